"""One operation of a client: the actual effects of its statements, and the result that the client got."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db import DatabaseError

from resourcepool.exceptions import DatabaseUnavailable
from tests.simulation import schedule
from tests.simulation.ledger import Ledger, Pair
from tests.simulation.tickets import TTL as TICKET_TTL

TICKETS = (
    'UPDATE "resourcepool_ticket"',
    'DELETE FROM "resourcepool_ticket"',
    'INSERT INTO "resourcepool_ticket"',
)


class Effect(NamedTuple):
    """One change of a row that an operation made."""

    kind: str
    before: Pair
    after: Pair
    was_live: bool  # the grant that it ended or extended had not run out


@dataclass(eq=False, slots=True)
class Held:
    """A handle of a program."""

    lease: Any
    pair: Pair
    ttl: float  # seconds
    is_lost: bool = False  # it knows, and was right
    is_in_doubt: bool = False  # unknown whether it was released


@dataclass(eq=False)
class Operation:
    """The current operation of one actor.

    Attributes:
        may: the allowed changes of rows, as named in ``ledger.CHANGES``.
        targets: the grants that it uses.
        ttl, cooldown: milliseconds.
        heir: the name of the successor.
        serves: the waiters of its process, whose rows it may renew and release.
        rests: allowed cool-downs in milliseconds for rows that it releases on behalf of others.
        asked: requested ttl in milliseconds by holder, if it differs from ``ttl``.
        writes: it also writes to the fenced target.
        was_live: one of its statements found its grant live.
        failures, cuts: failed statements; among these, lost connections.
        began_at: seconds, by the clock of its process.
    """

    name: str
    process: Any
    ledger: Ledger
    may: tuple[str, ...] = ()
    targets: tuple[Pair, ...] = ()
    ttl: int = 0
    cooldown: int = 0
    heir: str = ""
    serves: bool = False
    asked: Callable[[], dict[str, int]] = dict
    rests: tuple[int, ...] = ()
    writes: bool = False
    effects: list[Effect] = field(default_factory=list)
    was_live: bool = False
    failures: int = 0
    cuts: int = 0
    began_at: float = 0.0

    def __str__(self) -> str:
        return f"{self.name} {', '.join(f'row {pk} fence {fence}' for pk, fence in self.targets)}".strip()

    def sending(self, sql: str) -> None:
        """Note that a statement is about to run."""
        running = schedule.now_running()
        if sql.startswith(TICKETS):
            running.current.gave_at = running.now
        if not sql.startswith('UPDATE "resourcepool_proxy"'):
            return
        running.current.wrote_at = running.now
        if not self.was_live:
            self.was_live = any(self.ledger.is_live(pair, running.now) for pair in self.targets)

    def sent(self, sql: str, *, is_open: bool) -> None:
        """Note that it has run; without an open transaction, its effects are visible."""
        running = schedule.now_running()
        if is_open or sql.startswith("SELECT"):
            return
        if wrong := self.ledger.look(self, running.current.wrote_at, running.current.gave_at):
            running.note(sql)
            running.blame(wrong)

    def failed(self) -> None:
        """Note that the database refused a statement."""
        self.failures += 1

    def cut(self) -> None:
        """Note that the connection was lost."""
        self.failures += 1
        self.cuts += 1

    def may_use(self, pair: Pair) -> bool:
        """Whether the operation may renew or end this grant."""
        grant = self.ledger.grants.get(pair)
        if grant is None or grant.process not in (self.process, None):
            return False
        return pair in self.targets or (self.serves and grant.ticket is not None)

    def ttls_of(self, pair: Pair) -> set[int]:
        """Return the ttls in milliseconds with which it may renew this grant."""
        grant = self.ledger.grants.get(pair)
        if self.serves:
            return {grant.ttl if grant is not None else self.ttl, TICKET_TTL}
        return {self.ttl or (grant.ttl if grant is not None else 0)}

    @property
    def cooldowns(self) -> tuple[int, ...]:
        """The allowed cool-downs in milliseconds of the rows that it releases."""
        return (self.cooldown, *self.rests)

    def ttl_under(self, holder: str) -> int:
        """Return the ttl in milliseconds that this holder requests."""
        return self.asked().get(holder, self.ttl)

    def note(self, kind: str, before: Pair, after: Pair, *, was_live: bool) -> None:
        """Note a change of a row."""
        kind = "release" if kind == "pass on" else kind
        self.effects.append(Effect(kind, before, after, was_live))

    def did(self, kind: str) -> list[Effect]:
        """Return its changes of this kind."""
        return [effect for effect in self.effects if effect.kind == kind]

    def run(self, call: Callable[[], Any], *documented: type[Exception]) -> Any:
        """Run it in the current actor; returns its result, or the documented error that it raised."""
        running = schedule.now_running()
        actor = running.current
        actor.operation, self.began_at = self, running.monotonic()
        running.note(f"begins: {self}")
        try:
            outcome = call()
        except (*documented, DatabaseUnavailable) as error:
            if isinstance(error, DatabaseError | DatabaseUnavailable) and not self.failures:
                raise  # nothing was wrong with the database
            outcome = error
        running.note(f"ends:   {self}: {outcome!r}")
        return outcome

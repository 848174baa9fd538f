"""The history of every row and its allowed changes, apart from the code under test; see "How it works"."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.simulation.database import moment
from tests.simulation.tickets import Moved, Pair, Ticket, Tickets

READ = "SELECT id, busy_before, fence, holder, in_service, status, strikes FROM resourcepool_proxy ORDER BY id"
READ_TARGETS = "SELECT pk, fence, writes FROM target ORDER BY pk"


class Row(NamedTuple):
    """A row as committed; ``busy`` is a time in milliseconds."""

    pk: int
    busy: int
    fence: int
    holder: str
    in_service: bool
    status: str
    strikes: int

    @property
    def pair(self) -> Pair:
        return self.pk, self.fence


class Target(NamedTuple):
    """A row that holders write under ``guard``."""

    pk: int
    fence: int
    writes: int


@dataclass(slots=True)
class Grant:
    """The state of one grant, as the rows show it."""

    process: Any  # who may use it; None while it waits to be adopted
    ttl: int  # milliseconds
    ended_by: Any = None  # the process that gave it up
    lasts: int = 0  # milliseconds until the first renewal
    ticket: Ticket | None = None  # that it was given to, in line
    is_told: bool = False  # delivered to the waiter
    sent_by: float = 0.0  # the holder's clock before the last renewal that was certainly confirmed


class Change(NamedTuple):
    """One row before and after, when the statement ran, and by which operation."""

    before: Row
    after: Row
    at: int
    operation: Any
    to: Ticket | None = None  # the ticket that it was given to
    of: Ticket | None = None  # the one that it was taken from


def _claims(c: Change) -> bool:
    granted = c.before._replace(
        busy=c.at + c.operation.ttl, fence=c.before.fence + 1, holder=c.after.holder or "nobody"
    )
    return c.to is None and c.before.busy <= c.at and c.before.in_service and c.after == granted


def _renews(c: Change) -> bool:
    ends = {max(c.before.busy, c.at + ttl) for ttl in c.operation.ttls_of(c.before.pair)}
    return c.before.busy > c.at and c.after.busy in ends and c.after == c.before._replace(busy=c.after.busy)


def _passes_on(c: Change) -> bool:
    if c.to is None:
        return False
    given = c.before._replace(busy=c.at + c.to.lasts, fence=c.before.fence + 1, holder=c.to.holder)
    return c.before.in_service and c.after == given


def _gives(c: Change) -> bool:
    return c.before.busy <= c.at and _passes_on(c)


def _takes_back(c: Change) -> bool:
    freed = c.before._replace(busy=c.at, fence=c.before.fence + 1, holder="")
    return c.of is not None and c.after == freed


def _adopts(c: Change) -> bool:
    taken = c.before._replace(
        busy=c.at + c.operation.ttl, fence=c.before.fence + 1, holder=c.after.holder or "nobody"
    )
    return c.before.busy > c.at and c.before.pair in c.operation.targets and c.after == taken


def _releases(c: Change) -> bool:
    freed = c.before._replace(busy=c.after.busy, fence=c.before.fence + 1, holder="")
    return c.after == freed and c.after.busy - c.at in c.operation.cooldowns


def _hands_over(c: Change) -> bool:
    heir = c.before._replace(busy=c.at + c.operation.ttl, fence=c.before.fence + 1, holder=c.operation.heir)
    return c.after == heir


def _parks(c: Change) -> bool:
    status = "quarantined" if c.before.in_service else c.before.status
    parked = c.before._replace(
        busy=c.after.busy, fence=c.before.fence + 1, holder="", status=status, strikes=c.after.strikes
    )
    return c.after == parked and c.after.busy > c.at and c.after.strikes > 0


def _takes_out(c: Change) -> bool:
    return c.after == c.before._replace(in_service=False, status="out_of_service")


def _revives(c: Change) -> bool:
    return not c.before.in_service and c.after == c.before._replace(in_service=True, status="in_service")


def _returns(c: Change) -> bool:
    back = c.before._replace(in_service=True, status="in_service", strikes=0)
    # Its transaction changes rows twice, and ``at`` is the later moment: it rested at the moment that it was given.
    rested = c.before.holder == "" and c.after.busy <= c.at and c.before.busy > c.after.busy
    return c.after == back or (rested and c.after == back._replace(busy=c.after.busy, fence=c.before.fence + 1))


# What each kind of operation may do to a row; HOLDERS_OWN need the lease.
CHANGES: dict[str, Callable[[Change], bool]] = {
    "claim": _claims,
    "give": _gives,
    "take back": _takes_back,
    "revive": _revives,
    "take out": _takes_out,
    "return": _returns,
    "renew": _renews,
    "release": _releases,
    "pass on": _passes_on,
    "hand over": _hands_over,
    "adopt": _adopts,
    "park": _parks,
}
HOLDERS_OWN = {"renew", "release", "pass on", "hand over", "park"}
IN_LINE = {"give", "pass on"}


class Ledger:
    """The last known rows, all grants, and the judgement of every change."""

    def __init__(self, observer: sqlite3.Connection) -> None:
        self._observer = observer
        self.rows, self.targets = self._read_rows(), self._read_targets()
        self.tickets = Tickets(observer)
        self.grants: dict[Pair, Grant] = {}
        self.changes = 0

    def is_live(self, pair: Pair, now: int) -> bool:
        """Whether this grant is the current one of its row, and has not expired."""
        row = self.rows[pair[0]]
        return row.fence == pair[1] and row.busy > now

    def look(self, operation: Any, at: int, gave_at: int) -> str:
        """Read all rows after a statement of ``operation``; return the violation, if any.

        Args:
            at, gave_at: when the last statements ran that changed rows, and tickets.
        """
        before, self.rows = self.rows, self._read_rows()
        wrong, moved = self.tickets.look(operation, gave_at)
        for pk, row in self.rows.items():
            if row != before[pk]:
                to, of = moved.gained.pop(row.pair, None), moved.lost.pop(before[pk].pair, None)
                wrong = wrong or self._judge(Change(before[pk], row, at, operation, to, of))
        wrong = wrong or _unmatched(moved)
        return wrong or (self._judge_writes(operation) if operation.writes else "")

    def _judge(self, change: Change) -> str:
        before, after, at, operation, *_ = change
        self.changes += 1
        kind = next((kind for kind in operation.may if CHANGES[kind](change)), None)
        if after.fence < before.fence:
            return f"(1) the fence went back: {before} -> {after}"
        if kind is None or (change.to is not None) != (kind in IN_LINE):
            return f"(1, 3) no rule allows this at {at} ms: {before} -> {after}"
        if kind in HOLDERS_OWN and not operation.may_use(before.pair):
            return f"(3) {kind} by somebody who does not hold {before.pair}: {before} -> {after}"
        operation.note(kind, before.pair, after.pair, was_live=before.busy > at)
        if kind in HOLDERS_OWN and kind != "renew":
            self.grants[before.pair].ended_by = operation.process
        if kind in ("claim", "hand over", "adopt", *IN_LINE):
            if after.pair in self.grants:
                return f"(1) {after.pair} was granted twice"
            self.grants[after.pair] = self._granted(change, kind)
        return ""

    def _granted(self, change: Change, kind: str) -> Grant:
        if change.to is not None:
            owner = self.tickets.owners[change.to.pk]
            return Grant(owner.process, owner.ttl, lasts=min(change.to.lasts, owner.ttl), ticket=change.to)
        ttl = change.operation.ttl
        return Grant(None if kind == "hand over" else change.operation.process, ttl, lasts=ttl)

    def _judge_writes(self, operation: Any) -> str:
        before, self.targets = self.targets, self._read_targets()
        for pk, target in self.targets.items():
            if target != before[pk]:
                self.changes += 1
                if target.fence != self.rows[pk].fence or not operation.was_live:
                    return f"(5) a write under fence {target.fence} was committed; the row is {self.rows[pk]}"
        return ""

    def _read_rows(self) -> dict[int, Row]:
        rows = [Row(*row) for row in self._observer.execute(READ)]
        return {row.pk: row._replace(busy=moment(row.busy)) for row in rows}

    def _read_targets(self) -> dict[int, Target]:
        return {row[0]: Target(*row) for row in self._observer.execute(READ_TARGETS)}


def _unmatched(moved: Moved) -> str:
    """(8) A ticket and its rows change in the same commit."""
    for pair, ticket in (*moved.gained.items(), *moved.lost.items()):
        return f"(8) {ticket} was given, or lost, {pair}, and no row says so"
    return ""

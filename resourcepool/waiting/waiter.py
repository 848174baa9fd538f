"""One request that waits in line: its ticket, its looks and its outcome."""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.database.clock import monotonic
from resourcepool.leases import verbs
from resourcepool.leases.table import Model
from resourcepool.leases.terms import Grant, margin
from resourcepool.threads.signal_safe_event import SignalSafeEvent
from resourcepool.waiting import tickets
from resourcepool.waiting.estimates import (
    LAST_CHECK_BEFORE_TIMEOUT,
    MIN_FIRST_CHECK,
    estimate_of,
    no_waiter_cache,
    pause,
)
from resourcepool.waiting.free_rows import python_key
from resourcepool.waiting.lease import load, make_handles, release, release_quietly
from resourcepool.waiting.models import line_name
from resourcepool.waiting.request import Request, Source
from resourcepool.waiting.ticket_wakeups import ticket_wakeups
from resourcepool.waiting.tickets import HeldRows, NewTicket, TicketState

CANCELLED = CancelledError()


class Outcome:
    """Decided once, by the first of these: it is served, it fails, or it gives up.

    Used instead of a ``Future``, whose lock a signal handler can leave locked (``threads.bell``); then the thread that
    serves all waiters of this process would hang.
    """

    __slots__ = ("_bell", "_decided", "_tell")

    def __init__(self) -> None:
        self._bell = SignalSafeEvent()
        self._decided: dict[str, tuple[list[Any], BaseException | None]] = {}
        self._tell: Callable[[], object] | None = None

    @property
    def is_done(self) -> bool:
        """Whether it has been decided."""
        return bool(self._decided)

    @property
    def is_cancelled(self) -> bool:
        """Whether the waiter has given up."""
        return self._result[1] is CANCELLED

    @property
    def leases(self) -> list[Any]:
        """The granted leases; none, if it was not served."""
        return self._result[0]

    def serve(self, leases: list[Any]) -> bool:
        """Grant these leases; False: it was already decided, and nobody will take them."""
        return self._decide(leases, None)

    def fail(self, error: Exception) -> bool:
        """Make ``result`` raise this; False: it was already decided."""
        return self._decide([], error)

    def cancel(self) -> bool:
        """Give up; False: it was already served, or has failed."""
        self._decide([], CANCELLED)
        return self.is_cancelled

    def result(self) -> list[Any]:
        """Return the leases; raises the error it failed with, or CancelledError. It must be decided."""
        leases, error = self._result
        if error is not None:
            raise error
        return leases

    def wait(self, seconds: float) -> None:
        """Wait until it is decided, at most this many seconds; for one thread."""
        if not self.is_done:
            self._bell.wait(seconds)

    def add_done_callback(self, tell: Callable[[], object]) -> None:
        """Call ``tell`` once it is decided, perhaps twice, in the thread that decides."""
        self._tell = tell
        if self.is_done:
            tell()

    @property
    def _result(self) -> tuple[list[Any], BaseException | None]:
        return self._decided.get("", ([], None))

    def _decide(self, leases: list[Any], error: BaseException | None) -> bool:
        mine = leases, error
        is_first = self._decided.setdefault("", mine) is mine
        self._bell.wake()
        if self._tell is not None:
            self._tell()
        return is_first


@dataclass(eq=False, slots=True)
class Waiter:
    """A request that waits in line.

    Attributes:
        holder: the name under which it waits, and will hold its rows.
        look_at, free_at: when to look at its ticket, and at free rows.
        outcome: the leases, once it is served.
        ticket: None: it has none at this moment.
        is_taking: it may have a ticket with an unknown key: it was interrupted while it took the ticket.
        renewed_at: this process's clock just before the ticket was taken or last renewed.
        holds: its rows so far, of several, as last seen.
        trouble: the database's error, if the last statement for it failed.
        has_joined: the background thread looks for it.
        is_late: its time is up, and the database is to decide what came first.
        loop: of its task, where ``lease.resource`` must not touch the database: it is read before; None: a thread.
        is_near: it is among the first in line; None: unknown.
        had_to_wait: False: when it came, rows were free.
        line: the name of its line.
        place: (priority, ticket); before all others of its priority as long as it has no ticket.
    """

    source: Source
    using: str
    request: Request
    holder: str
    outcome: Outcome = field(default_factory=Outcome)
    ticket: NewTicket | None = None
    insert_in_doubt: bool = False
    began: float = field(default_factory=monotonic)
    next_check: float = 0.0
    next_scan: float = 0.0
    renewed_at: float = 0.0
    holds: HeldRows = ()
    db_error: Exception | None = None
    has_joined: bool = False
    is_late: bool = False
    loop: AbstractEventLoop | None = None
    is_near: bool | None = None
    had_to_wait: bool = True
    line: str = field(init=False)
    place: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        """Find out where it stands in which line."""
        self.line = line_name(self.model, self.request.selector)
        self.place = self.request.priority, 0

    @property
    def model(self) -> Model:
        """The model whose rows it waits for."""
        return self.source.model

    @property
    def is_done(self) -> bool:
        """Whether it was served, failed, or gave up."""
        return self.outcome.is_done

    @property
    def is_orphaned(self) -> bool:
        """Whether its task will never run again: the loop is closed."""
        return self.loop is not None and self.loop.is_closed()

    @property
    def since(self) -> float:
        """Since when it looks in vain, by this process's clock.

        Of a lock, which all in line have one after the other: since this process last saw the line move. Were it since
        the waiter came, a long line would be slow, and get longer for that.
        """
        if not self.model.line_per_name:
            return self.began
        return max(self.began, estimate_of(self.line, self.using).moved_at)

    def has(self, ticket: NewTicket) -> None:
        """Note that it waits in line with this ticket, and when to look at it first."""
        self.ticket, self.insert_in_doubt, self.holds, self.db_error = ticket, False, (), None
        self.place = self.request.priority, ticket.pk
        self.renewed_at = at = ticket.sent_at
        no_waiter_cache.note_waiter(self.line, self.using)
        speed = estimate_of(self.line, self.using)
        at_last = self.began + self.request.timeout - LAST_CHECK_BEFORE_TIMEOUT
        first = min(
            speed.first_check_delay(ticket.pk, at), ticket.grant_seconds / 4
        )  # the rows it is given may expire
        self.next_check = min(at + first, max(at + MIN_FIRST_CHECK, at_last))
        self.next_scan = max(self.next_check, min(self.next_check + speed.first_scan_delay(at), at_last))

    def clear_ticket(self) -> None:
        """Note that its ticket is gone: it needs another one now."""
        if self.ticket is not None:
            ticket_wakeups.discard(self.using, self.ticket.pk)
        self.ticket, self.holds, self.next_check = None, (), 0.0

    def give(self, grants: list[Grant]) -> None:
        """Deliver these grants; if the waiter has just given up, they go straight back."""
        leases = []
        try:
            leases = make_handles(self.source, self.using, self.request, grants)
            if self.loop is not None:
                load(leases, self.loop)
        except Exception as error:  # noqa: BLE001 (no more threads, for example: the caller is to know)
            release_quietly(leases)
            self.outcome.fail(error)
            return
        if not self.outcome.serve(leases):
            release_quietly(leases)


def look(connection: BaseDatabaseWrapper, those: Sequence[Waiter]) -> Iterator[tuple[Waiter, list[Grant]]]:
    """Look at the tickets of ``those``; yield served waiters with their grants, and set the next look of the others.

    A waiter whose ticket expired, because its process stood still for too long, has no ticket afterwards.

    Raises:
        DatabaseUnavailable: the waiters that have not been yielded are unchanged.
    """
    sent_at = monotonic()
    found = tickets.look(connection, [waiter.ticket.pk for waiter in those if waiter.ticket])
    for waiter in those:
        seen = found.get(waiter.ticket.pk) if waiter.ticket else None
        if waiter.ticket is None or seen is None or (seen.is_waiting and seen.left <= 0):
            waiter.clear_ticket()
        elif seen.is_waiting:
            waiter.holds, waiter.db_error = rows_of(waiter, seen), None
            grant_seconds = waiter.ticket.grant_seconds
            waiter.next_check = sent_at + pause(
                sent_at - waiter.since, near=waiter.is_near, grant_seconds=grant_seconds
            )
        elif grants := _grants(connection, waiter, seen, sent_at):
            yield waiter, grants
        else:
            pass_on(connection, waiter, seen)


def pass_on(connection: BaseDatabaseWrapper, waiter: Waiter, seen: TicketState) -> None:
    """Give the rows of this ticket to the next in line, and remove the ticket."""
    if waiter.ticket is not None:
        pk = waiter.ticket.pk
        while not tickets.leave(connection, [pk], seen.fence) and (now := tickets.look(connection, [pk])):
            seen = now[pk]  # it was given one more row meanwhile
    for pk, fence in rows_of(waiter, seen):
        release(connection, waiter.model, pk, fence, trusted_until=0.0)
    waiter.clear_ticket()


def rows_of(waiter: Waiter, seen: TicketState) -> HeldRows:
    """Return the rows of a ticket, with primary keys as the model has them."""
    return tuple((python_key(waiter.model, pk), fence) for pk, fence in seen.granted)


def _grants(
    connection: BaseDatabaseWrapper, waiter: Waiter, seen: TicketState, sent_at: float
) -> list[Grant] | None:
    """Return the grants, or None if they may have expired before they were seen.

    Trust begins when the look that found them was sent, and lasts as long as the database said: this process cannot
    know when they were given. That may be before the last look that found nothing, if the commit came later.
    """
    assert waiter.ticket is not None  # noqa: S101 (for the type checker)
    rows, now = rows_of(waiter, seen), monotonic()
    if len(rows) == 1:
        if now >= sent_at + seen.left - margin(seen.left):
            return None
        given_at = sent_at + seen.left - waiter.ticket.grant_seconds
        speed = estimate_of(waiter.line, waiter.using)
        speed.served(waiter.ticket.pk, given_at)
        speed.note_wait(given_at - waiter.began)
        return [Grant(pk, fence, waiter.holder, sent_at, seen.left) for pk, fence in rows]
    # They were given at different times: one renewal confirms that all are there.
    if verbs.renew(connection, waiter.model, rows, waiter.request.terms.ttl) < len(rows):
        return None
    return [Grant(pk, fence, waiter.holder, now) for pk, fence in rows]

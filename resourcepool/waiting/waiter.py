"""A request that waits in line: its ticket, its polling and its outcome."""

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
    """Set once, by the first of ``serve``, ``fail`` and ``cancel``.

    Replaces ``Future``, whose lock a signal handler can leave locked (``SignalSafeEvent``): the thread that serves
    all waiters of this process would hang.
    """

    __slots__ = ("_bell", "_callback", "_decided")

    def __init__(self) -> None:
        self._bell = SignalSafeEvent()
        self._decided: dict[str, tuple[list[Any], BaseException | None]] = {}
        self._callback: Callable[[], object] | None = None

    @property
    def is_done(self) -> bool:
        """Whether it has been set."""
        return bool(self._decided)

    @property
    def is_cancelled(self) -> bool:
        """Whether ``cancel`` set it."""
        return self._result[1] is CANCELLED

    @property
    def leases(self) -> list[Any]:
        """The granted leases, if it was served."""
        return self._result[0]

    def serve(self, leases: list[Any]) -> bool:
        """Deliver these leases; False: it was already set, and the caller will not take them."""
        return self._decide(leases, None)

    def fail(self, error: Exception) -> bool:
        """Make ``result`` raise this error; False: it was already set."""
        return self._decide([], error)

    def cancel(self) -> bool:
        """Give up; False: it was already served or has failed."""
        self._decide([], CANCELLED)
        return self.is_cancelled

    def result(self) -> list[Any]:
        """Return the leases; raises the error or CancelledError. The outcome must be set."""
        leases, error = self._result
        if error is not None:
            raise error
        return leases

    def wait(self, seconds: float) -> None:
        """Wait up to ``seconds`` until it is set; for a single thread."""
        if not self.is_done:
            self._bell.wait(seconds)

    def add_done_callback(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` once the outcome is set, perhaps twice, in the thread that sets it."""
        self._callback = callback
        if self.is_done:
            callback()

    @property
    def _result(self) -> tuple[list[Any], BaseException | None]:
        return self._decided.get("", ([], None))

    def _decide(self, leases: list[Any], error: BaseException | None) -> bool:
        result = leases, error
        is_first = self._decided.setdefault("", result) is result
        self._bell.wake()
        if self._callback is not None:
            self._callback()
        return is_first


@dataclass(eq=False, slots=True)
class Waiter:
    """A request that waits in line.

    Attributes:
        holder: the name under which it waits and will hold its rows.
        outcome: set once it is served.
        ticket: None while it has none.
        insert_in_doubt: it may have a ticket with an unknown key, because the INSERT was interrupted.
        next_check: when to check the ticket, by this process's clock.
        next_scan: when to scan for free rows.
        renewed_at: this process's clock just before the ticket was taken or last renewed.
        holds: its rows so far, if it requests several.
        db_error: the error of the last statement for it, if that failed.
        has_joined: the waiters' thread serves it.
        is_late: its time is up; the database decides whether it was served first.
        loop: the event loop of its task, where ``lease.resource`` must be read in advance; None for a thread.
        is_near: it is among the first in line; None: unknown.
        had_to_wait: False if rows were free when it came.
        line: the name of its line.
        place: (priority, ticket number); number 0 while it has no ticket.
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
        """Set the line and the place in it."""
        self.line = line_name(self.model, self.request.selector)
        self.place = self.request.priority, 0

    @property
    def model(self) -> Model:
        """The model whose rows it waits for."""
        return self.source.model

    @property
    def is_done(self) -> bool:
        """Whether it was served, failed, or was cancelled."""
        return self.outcome.is_done

    @property
    def is_orphaned(self) -> bool:
        """Whether its task will never run again, because the loop is closed."""
        return self.loop is not None and self.loop.is_closed()

    @property
    def backoff_start(self) -> float:
        """Start of the back-off, by this process's clock.

        Its arrival; for a lock, which serves one waiter after the other, the last time its line moved. Otherwise a long
        line would poll slowly, and get longer.
        """
        if not self.model.line_per_name:
            return self.began
        return max(self.began, estimate_of(self.line, self.using).moved_at)

    def set_ticket(self, ticket: NewTicket) -> None:
        """Note its ticket, and schedule the first check and scan."""
        self.ticket, self.insert_in_doubt, self.holds, self.db_error = ticket, False, (), None
        self.place = self.request.priority, ticket.pk
        self.renewed_at = at = ticket.sent_at
        no_waiter_cache.note_waiter(self.line, self.using)
        speed = estimate_of(self.line, self.using)
        at_last = self.began + self.request.timeout - LAST_CHECK_BEFORE_TIMEOUT
        # At the latest after a quarter of the grant, which may expire.
        first = min(speed.first_check_delay(ticket.pk, at), ticket.grant_seconds / 4)
        self.next_check = min(at + first, max(at + MIN_FIRST_CHECK, at_last))
        self.next_scan = max(self.next_check, min(self.next_check + speed.first_scan_delay(at), at_last))

    def clear_ticket(self) -> None:
        """Note that its ticket is gone, so it needs another one."""
        if self.ticket is not None:
            ticket_wakeups.discard(self.using, self.ticket.pk)
        self.ticket, self.holds, self.next_check = None, (), 0.0

    def deliver(self, grants: list[Grant]) -> None:
        """Deliver these grants; releases them if the waiter was just cancelled."""
        leases = []
        try:
            leases = make_handles(self.source, self.using, self.request, grants)
            if self.loop is not None:
                load(leases, self.loop)
        except Exception as error:  # noqa: BLE001 (for example, no more threads: raised in the caller)
            release_quietly(leases)
            self.outcome.fail(error)
            return
        if not self.outcome.serve(leases):
            release_quietly(leases)


def check_tickets(
    connection: BaseDatabaseWrapper, waiters: Sequence[Waiter]
) -> Iterator[tuple[Waiter, list[Grant]]]:
    """Check the tickets; yield served waiters with their grants, and schedule the next check of the others.

    A waiter whose ticket expired, because its process was paused for too long, has no ticket afterwards.

    Raises:
        DatabaseUnavailable: waiters that were not yielded are unchanged.
    """
    sent_at = monotonic()
    states = tickets.look(connection, [waiter.ticket.pk for waiter in waiters if waiter.ticket])
    for waiter in waiters:
        seen = states.get(waiter.ticket.pk) if waiter.ticket else None
        if waiter.ticket is None or seen is None or (seen.is_waiting and seen.left <= 0):
            waiter.clear_ticket()
        elif seen.is_waiting:
            waiter.holds, waiter.db_error = rows_of(waiter, seen), None
            grant_seconds = waiter.ticket.grant_seconds
            waiter.next_check = sent_at + pause(
                sent_at - waiter.backoff_start, near=waiter.is_near, grant_seconds=grant_seconds
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
            seen = now[pk]  # it was given another row meanwhile
    for pk, fence in rows_of(waiter, seen):
        release(connection, waiter.model, pk, fence, trusted_until=0.0)
    waiter.clear_ticket()


def rows_of(waiter: Waiter, seen: TicketState) -> HeldRows:
    """Return the rows of a ticket, with primary keys as the type of the model's field."""
    return tuple((python_key(waiter.model, pk), fence) for pk, fence in seen.granted)


def _grants(
    connection: BaseDatabaseWrapper, waiter: Waiter, seen: TicketState, sent_at: float
) -> list[Grant] | None:
    """Return the grants, or None if they may have expired before this check.

    Trust begins when the check was sent, and lasts for the time left by the database's clock: this process cannot know
    when the rows were given. That may be before the previous check, if the commit came later.
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
    # The rows were given at different times: one renewal confirms all of them.
    if verbs.renew(connection, waiter.model, rows, waiter.request.terms.ttl) < len(rows):
        return None
    return [Grant(pk, fence, waiter.holder, now) for pk, fence in rows]

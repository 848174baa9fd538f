"""A request that waits in line."""

from asyncio import AbstractEventLoop
from dataclasses import dataclass, field

from resourcepool import hints
from resourcepool.clock import monotonic
from resourcepool.conf import ticket_ttl
from resourcepool.db.threads import Outcome
from resourcepool.leases.free_rows import python_key
from resourcepool.leases.keeper import keeper
from resourcepool.leases.models import Model
from resourcepool.leases.terms import Grant, Request
from resourcepool.waiting.models import line_name
from resourcepool.waiting.pacing import FIRST_IN_LINE, SHORTEST, Pacing, pacing_of, pause
from resourcepool.waiting.source import Source, make_handles, release_quietly
from resourcepool.waiting.tickets import HeldRows, NewTicket, TicketState

LAST_LOOK = 0.015  # seconds before the timeout of a waiter, if its first look would come later


@dataclass(eq=False, slots=True)
class Waiter:
    """A request that waits in line.

    Attributes:
        holder: the name under which it waits and will hold its rows.
        loop: the event loop of its task, where ``lease.resource`` must be read in advance; None for a thread.
        outcome: set once it is served.
        ticket: None while it has none. Its own thread may clear it at any moment, when it gives up.
        insert_in_doubt: it may have a ticket with an unknown key, because the INSERT was interrupted.
        next_look, next_scan: when to look at the ticket, and for free rows, by this process's clock.
        renew_at: when to renew the ticket, by this process's clock.
        model: the model whose rows it waits for.
        line, pacing: the name of its line, and what this process knows of it.
        holds: its rows so far, if it requests several.
        db_error: the error of the last statement for it, if that failed.
        began: when the request began, by this process's clock.
        ends_at: when its time is up; infinity after that, until it is decided whether it was served first.
        is_late: only of ``fifo_once``: its time is up, and the database decides whether it was served first.
        keeps_session: its thread's session was open before, so it stays open.
        is_near: it is among the first in line: by the estimate when it took its ticket, or by the last scan.
    """

    source: Source
    using: str
    request: Request
    holder: str
    loop: AbstractEventLoop | None = None
    outcome: Outcome = field(default_factory=Outcome)
    ticket: NewTicket | None = None
    insert_in_doubt: bool = False
    began: float = field(default_factory=monotonic)
    next_look: float = 0.0
    next_scan: float = 0.0
    renew_at: float = 0.0
    holds: HeldRows = ()
    db_error: Exception | None = None
    ends_at: float = field(init=False)
    is_late: bool = False
    is_near: bool = False
    keeps_session: bool = False
    model: Model = field(init=False)
    line: str = field(init=False)
    pacing: Pacing = field(init=False)

    def __post_init__(self) -> None:
        """Set its end, the name of its line, and what this process knows of it."""
        self.ends_at = self.began + self.request.timeout
        self.model = self.source.model
        self.line = line_name(self.model, self.request.selector)
        self.pacing = pacing_of(self.line, self.using)

    @property
    def place(self) -> tuple[int, int]:
        """Its place in the line: priority and number of its ticket."""
        ticket = self.ticket
        return self.request.priority, ticket.pk if ticket else 0

    @property
    def is_done(self) -> bool:
        """Whether it was served, failed, or was cancelled."""
        return bool(self.outcome.decided)

    @property
    def is_orphaned(self) -> bool:
        """Whether its task will never run again, because the loop is closed."""
        return self.loop is not None and self.loop.is_closed()

    @property
    def due(self) -> float:
        """When it needs a turn of the poller: 0 if it is done."""
        return 0.0 if self.outcome.decided else min(self.next_look, self.next_scan, self.renew_at)

    def set_ticket(self, ticket: NewTicket) -> None:
        """Note its ticket, and schedule the first look and the next scan."""
        self.ticket, self.insert_in_doubt, self.holds, self.db_error = ticket, False, (), None
        at = ticket.sent_at
        self.renew_at = at + ticket.ttl / 3
        pacing, at_last = self.pacing, self.ends_at - LAST_LOOK
        # At the latest after a quarter of the grant, which may expire.
        first = min(pacing.first_look(ticket.pk, at), ticket.grant_seconds / 4)
        self.next_look = min(at + first, max(at + SHORTEST, at_last))
        self.next_scan = max(self.next_look, min(self.next_look + pacing.second_scan(at), at_last))
        ahead = pacing.ahead(ticket.pk, at)
        self.is_near = ahead is not None and ahead <= FIRST_IN_LINE
        pacing.found_waiters(at)

    def set_next_look(self, now: float) -> None:
        """Schedule the next look, after one at ``now`` showed that it still waits."""
        self.next_look = now + self.pause(now)

    def pause(self, now: float) -> float:
        """Return the seconds from a look at ``now`` to the next one."""
        ticket = self.ticket
        grant_seconds = ticket.grant_seconds if ticket else ticket_ttl()
        # A lock serves one waiter after the other: in a long line, pauses count from when the line last moved.
        since = max(self.began, self.pacing.moved_at) if self.model.line_per_name else self.began
        return pause(now - since, is_near=self.is_near, grant_seconds=grant_seconds)

    def clear_ticket(self) -> None:
        """Note that its ticket is gone, so it needs another one."""
        if (ticket := self.ticket) is not None:
            hints.forget(self.using, ticket.pk)
        self.ticket, self.holds, self.next_look = None, (), 0.0

    def rows_of(self, seen: TicketState) -> HeldRows:
        """Return the rows of its ticket, with primary keys as the type of the model's field."""
        return tuple([(python_key(self.model, pk), fence) for pk, fence in seen.granted])

    def deliver(self, grants: list[Grant]) -> None:
        """Deliver these grants; releases them if the waiter was just cancelled.

        If the thread that polls changes in the middle of a turn, two threads may deliver the same grants: the second
        handles are dropped.
        """
        try:
            leases = make_handles(self.source, self.using, self.request, grants, self.loop)
        except Exception as error:  # noqa: BLE001 (for example, no more threads: raised in the caller)
            self.outcome.fail(error)
            return
        except BaseException:
            # A signal handler's, in the thread that polls. The rows were released, so this waiter takes another ticket.
            self.clear_ticket()
            raise
        if not self.outcome.serve(leases):
            if self.outcome.leases:
                for lease in leases:
                    keeper.remove(lease)
            else:
                release_quietly(leases)

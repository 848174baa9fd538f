"""One request that stands in line, and what becomes of it."""

from concurrent.futures import Future
from dataclasses import dataclass, field

from resourcepool.leases.clock import monotonic
from resourcepool.leases.lease import Lease
from resourcepool.leases.table import Model
from resourcepool.leases.verbs import Grant
from resourcepool.waiting.contention import speed_of
from resourcepool.waiting.notices import notices
from resourcepool.waiting.request import Request, Source
from resourcepool.waiting.tickets import Pairs, Taken

SOON = 0.1  # seconds after the first look at its ticket, to look at free rows; mostly a newcomer has done so


@dataclass(eq=False, slots=True)
class Waiter:
    """A request that stands in line.

    Attributes:
        holder: the name under which it stands in line, and will hold what it is granted.
        look_at, free_at: when to look at its ticket, and at free rows.
        outcome: the leases, once it is served; cancelled by a caller who gives up.
        ticket: None: it has none at this moment.
        is_taking: it may have one whose key is not known: it was interrupted while it took it.
        renewed_at: this process's clock just before the ticket was taken, or renewed last.
        looked_at: the same before the last look at it.
        holds: what it has of several, as seen last.
        trouble: what the database said, if the last thing that was asked for it here was in vain.
        had_to_wait: a look has left it unserved.
        has_joined: the thread looks for it.
        is_near: it is among the first in line; None: that is not known.
    """

    source: Source
    using: str
    request: Request
    holder: str
    outcome: Future[list[Lease]] = field(default_factory=Future)
    ticket: Taken | None = None
    is_taking: bool = False
    began: float = field(default_factory=monotonic)
    look_at: float = 0.0
    free_at: float = 0.0
    renewed_at: float = 0.0
    looked_at: float = 0.0
    holds: Pairs = ()
    trouble: Exception | None = None
    had_to_wait: bool = False
    has_joined: bool = False
    is_near: bool | None = None

    @property
    def model(self) -> Model:
        """Rows of which model it waits for."""
        return self.source.model

    @property
    def has_left(self) -> bool:
        """Whether it was served, failed, or gave up."""
        return self.outcome.done()

    def has(self, ticket: Taken) -> None:
        """Note that it stands in line with this ticket, and when to look at it first."""
        self.ticket, self.is_taking, self.holds, self.trouble = ticket, False, (), None
        self.renewed_at = self.looked_at = at = ticket.sent_at
        pause = speed_of(self.model, self.using).first_pause(ticket.pk, at)
        self.look_at = at + min(pause, ticket.lasts / 4)  # what it is given may run out
        self.free_at = self.look_at + SOON

    def lost_ticket(self) -> None:
        """Note that its ticket is gone: it needs another one."""
        if self.ticket is not None:
            notices.discard(self.using, self.ticket.pk)
        self.ticket, self.holds = None, ()

    def give(self, grants: list[Grant]) -> None:
        """Hand over what was granted; should the waiter have given up just now, it goes straight back."""
        leases: list[Lease] = []
        try:
            for grant in grants:
                leases.append(self.source.handle(self.using, grant, self.request))  # noqa: PERF401 (see below)
        except Exception as error:  # noqa: BLE001 (no more threads, for example: the caller is to know)
            self.fail(error)
        if self.outcome.done() and not self.outcome.cancelled():
            self._give_back(leases)
        elif self.outcome.set_running_or_notify_cancel():
            self.outcome.set_result(leases)
        else:
            self._give_back(leases)

    def _give_back(self, leases: list[Lease]) -> None:
        for lease in leases:
            lease.abandon()

    def give_up(self) -> list[Lease]:
        """Stop waiting; returns what was granted in the very last moment, if anything."""
        return [] if self.outcome.cancel() else self.outcome.result()

    def fail(self, error: Exception) -> None:
        """Tell the waiter that it can never be served."""
        if not self.has_left and self.outcome.set_running_or_notify_cancel():
            self.outcome.set_exception(error)

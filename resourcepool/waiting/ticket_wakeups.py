"""Wakes waiters: in this process directly, in another one by a hint."""

import os

from resourcepool import hints
from resourcepool.database.wakeup import Wakeup
from resourcepool.threads.signal_safe_event import SignalSafeEvent


class TicketWakeups:
    """The tickets of this process, and those that should be checked now."""

    def __init__(self) -> None:
        self._wakeups: dict[str, Wakeup] = {}
        self._tickets: dict[tuple[str, int], SignalSafeEvent | None] = {}
        self._noticed: dict[tuple[str, int], None] = {}

    def wakeup(self, alias: str) -> Wakeup:
        """Return the wake-up of the waiters' thread for this database."""
        return self._wakeups.get(alias) or self._wakeups.setdefault(alias, Wakeup())

    def add(self, alias: str, ticket: int, wake_event: SignalSafeEvent | None = None) -> None:
        """Register a ticket of this process, woken by ``wake_event``; without it, by the waiters' thread."""
        self._tickets[alias, ticket] = wake_event
        if hints.is_enabled():
            hints.listen(self.wake_all)

    def discard(self, alias: str, ticket: int) -> None:
        """Unregister a ticket."""
        self._tickets.pop((alias, ticket), None)

    def wake(self, alias: str, ticket: int) -> bool:
        """Request a check of this ticket; returns False if it belongs to another process."""
        wake_event = self._tickets.get((alias, ticket), self)
        if wake_event is self:
            return False
        self._notice(alias, ticket, wake_event)
        return True

    def wake_all(self) -> None:
        """Request a check of every ticket of this process."""
        for (alias, ticket), wake_event in list(self._tickets.items()):
            self._notice(alias, ticket, wake_event)

    def _notice(self, alias: str, ticket: int, wake_event: object) -> None:
        if isinstance(wake_event, SignalSafeEvent):
            wake_event.wake()
        else:
            self._noticed[alias, ticket] = None
            self.wakeup(alias).wake()

    def take(self, alias: str) -> set[int]:
        """Return the tickets on this database for which a check was requested since the last call."""
        noticed = [key for key in list(self._noticed) if key[0] == alias]
        for key in noticed:
            self._noticed.pop(key, None)
        return {ticket for _, ticket in noticed}


def notify(using: str, ticket: int, address: int, per_second: float = 0.0) -> None:
    """Wake the process at ``address``, because this ticket was given a row. A lost wake-up costs only time.

    Args:
        per_second: approximate number of tickets served per second; 0: unknown.
    """
    if address and not ticket_wakeups.wake(using, ticket):
        hints.send(address, per_second)


def _after_fork() -> None:
    ticket_wakeups.__init__()  # type: ignore[misc]  # the tickets belong to the parent


ticket_wakeups = TicketWakeups()
os.register_at_fork(after_in_child=_after_fork)

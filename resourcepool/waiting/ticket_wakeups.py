"""Tells waiters to look: in this process at once, in another one by a hint."""

import os

from resourcepool import hints
from resourcepool.database.wakeup import Wakeup
from resourcepool.threads.signal_safe_event import SignalSafeEvent


class TicketWakeups:
    """The tickets of this process, and which of them should be looked at now."""

    def __init__(self) -> None:
        self._alarms: dict[str, Wakeup] = {}
        self._tickets: dict[tuple[str, int], SignalSafeEvent | None] = {}
        self._noticed: dict[tuple[str, int], None] = {}

    def wakeup(self, alias: str) -> Wakeup:
        """Return the wakeup of the thread that looks for the waiters on this database."""
        return self._alarms.get(alias) or self._alarms.setdefault(alias, Wakeup())

    def add(self, alias: str, ticket: int, bell: SignalSafeEvent | None = None) -> None:
        """Note that this process has that ticket; a notice rings ``bell``, or without one the database's wakeup."""
        self._tickets[alias, ticket] = bell
        if hints.is_enabled():
            hints.listen(self.wake_all)

    def discard(self, alias: str, ticket: int) -> None:
        """Note that it no longer has that ticket."""
        self._tickets.pop((alias, ticket), None)

    def wake(self, alias: str, ticket: int) -> bool:
        """Request a look at this ticket, if it is one of this process."""
        bell = self._tickets.get((alias, ticket), self)
        if bell is self:
            return False
        self._notice(alias, ticket, bell)
        return True

    def wake_all(self) -> None:
        """Request a look at every ticket of this process."""
        for (alias, ticket), bell in list(self._tickets.items()):
            self._notice(alias, ticket, bell)

    def _notice(self, alias: str, ticket: int, bell: object) -> None:
        if isinstance(bell, SignalSafeEvent):
            bell.wake()
        else:
            self._noticed[alias, ticket] = None
            self.wakeup(alias).wake()

    def take(self, alias: str) -> set[int]:
        """Return the tickets on this database that have been noticed since the last call."""
        noticed = [which for which in list(self._noticed) if which[0] == alias]
        for which in noticed:
            self._noticed.pop(which, None)
        return {ticket for _, ticket in noticed}


def notify(using: str, ticket: int, address: int, per_second: float = 0.0) -> None:
    """Tell the process at ``address`` that this ticket was given a row; losing that costs only time.

    Args:
        per_second: how many tickets are given a row each second, about; 0: unknown.
    """
    if address and not ticket_wakeups.wake(using, ticket):
        hints.send(address, per_second)


def _after_fork() -> None:
    ticket_wakeups.__init__()  # type: ignore[misc]  # the parent's tickets are not the child's


ticket_wakeups = TicketWakeups()
os.register_at_fork(after_in_child=_after_fork)

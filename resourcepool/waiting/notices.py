"""Tells those who wait that they should look: in this process at once, in another one by a hint."""

import os

from resourcepool import hints
from resourcepool.bell import Bell
from resourcepool.database.wakeup import Wakeup


class Notices:
    """Which tickets this process has, and which of them should be looked at now."""

    def __init__(self) -> None:
        self._alarms: dict[str, Wakeup] = {}
        self._tickets: dict[tuple[str, int], Bell | None] = {}
        self._noticed: set[str] = set()

    def wakeup(self, alias: str) -> Wakeup:
        """Return what wakes those who look for the waiters on this database."""
        return self._alarms.get(alias) or self._alarms.setdefault(alias, Wakeup())

    def add(self, alias: str, ticket: int, bell: Bell | None = None) -> None:
        """Note that this process has that ticket; when to look at it, ``bell`` rings, else the database's wakeup."""
        self._tickets[alias, ticket] = bell
        if hints.are_on():
            hints.listen(self.look_at_all)

    def discard(self, alias: str, ticket: int) -> None:
        """Note that it has it no more."""
        self._tickets.pop((alias, ticket), None)

    def look_now(self, alias: str, ticket: int) -> bool:
        """Have this ticket looked at, if it is one of this process."""
        bell = self._tickets.get((alias, ticket), self)
        if bell is self:
            return False
        self._notice(alias, bell)
        return True

    def look_at_all(self) -> None:
        """Have every ticket of this process looked at."""
        for (alias, _), bell in list(self._tickets.items()):
            self._notice(alias, bell)

    def _notice(self, alias: str, bell: object) -> None:
        if isinstance(bell, Bell):
            bell.ring()
        else:
            self._noticed.add(alias)
            self.wakeup(alias).ring()

    def take(self, alias: str) -> bool:
        """Tell whether there has been a notice for this database since the last call."""
        if alias not in self._noticed:
            return False
        self._noticed.discard(alias)
        return True


def notify(using: str, ticket: int, address: int) -> None:
    """Say to the process at ``address`` that this ticket was given something; losing that costs time, nothing else."""
    if address and not notices.look_now(using, ticket):
        hints.send(address)


def _after_fork() -> None:
    notices.__init__()  # type: ignore[misc]  # the parent's tickets are not the child's


notices = Notices()
os.register_at_fork(after_in_child=_after_fork)

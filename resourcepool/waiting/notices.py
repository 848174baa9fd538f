"""Tells those who wait that they should look: in this process at once, in another one by a hint."""

import os

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import hints
from resourcepool.leases.alarm import Alarm
from resourcepool.waiting import tickets


class Notices:
    """Which tickets this process has, and which of them should be looked at now."""

    def __init__(self) -> None:
        self.alarm = Alarm()
        self._tickets: set[tuple[str, int]] = set()
        self._noticed = False

    def add(self, alias: str, ticket: int) -> None:
        """Note that this process has that ticket."""
        self._tickets.add((alias, ticket))

    def discard(self, alias: str, ticket: int) -> None:
        """Note that it has it no more."""
        self._tickets.discard((alias, ticket))

    def look_now(self, alias: str, ticket: int) -> bool:
        """Have this ticket looked at, if it is one of this process."""
        mine = (alias, ticket) in self._tickets
        if mine:
            self.look_at_all()
        return mine

    def look_at_all(self) -> None:
        """Have every ticket of this process looked at."""
        self._noticed = True
        self.alarm.ring()

    def take(self) -> bool:
        """Tell whether there has been a notice since the last call."""
        noticed, self._noticed = self._noticed, False
        return noticed


def notify(connection: BaseDatabaseWrapper, ticket: int, address: str = "") -> None:
    """Say that something was given to this ticket; losing that costs time, never correctness."""
    if not notices.look_now(connection.alias, ticket) and hints.are_on():
        hints.send(address or tickets.address(connection, ticket))


def _after_fork() -> None:
    notices.__init__()  # type: ignore[misc]  # the parent's tickets are not the child's


notices = Notices()
os.register_at_fork(after_in_child=_after_fork)

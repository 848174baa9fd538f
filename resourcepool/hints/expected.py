"""Notifies a waiter that its ticket was given a row: in this process directly, in another one by a hint."""

import os
from collections.abc import Callable

from resourcepool.hints.process import is_enabled, listen, send

_expected: dict[tuple[str, int], Callable[[], object]] = {}


def expect(using: str, ticket: int, wake: Callable[[], object]) -> None:
    """Call ``wake()`` when this ticket on this database was probably given a row."""
    _expected[using, ticket] = wake
    if is_enabled():
        listen(wake_all)


def forget(using: str, ticket: int) -> None:
    """Do not call it from now on."""
    _expected.pop((using, ticket), None)


def notify(using: str, ticket: int, address: int, per_second: float = 0.0) -> None:
    """Wake the waiter that expects this ticket in the process at ``address``. A lost hint costs only time.

    Args:
        per_second: approximate number of tickets served per second; 0: unknown.
    """
    if not address:
        return
    if (wake := _expected.get((using, ticket))) is not None:
        wake()
    else:
        send(address, per_second)


def wake_all() -> None:
    """Wake all waiters of this process: a hint does not name the ticket."""
    for wake in list(_expected.values()):
        wake()


os.register_at_fork(after_in_child=_expected.clear)

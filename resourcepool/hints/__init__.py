"""Hints: wake-ups sent to one process. Losing one costs time, never correctness.

A process that gets a hint reads its rows in the database, and acts only on these. With hints off, processes poll.
RESOURCEPOOL["HINTS"] selects the service that carries them.
"""

import atexit
import logging
import os
import secrets
import threading
from collections.abc import Callable
from time import monotonic
from typing import Any

from django.db import DatabaseError, InterfaceError, connections, transaction

from resourcepool.conf import setting
from resourcepool.exceptions import BadOption, ResourcePoolError
from resourcepool.hints.choice import Transport
from resourcepool.hints.threads import Listener, Sender

logger = logging.getLogger(__name__)

FORK_TIMEOUT = 0.2  # seconds for which a fork waits for exchanges with the service
MAX_ADDRESSES = 2**23  # a hand-over returns address and ticket as one number of 63 bits
EXIT_TIMEOUT = 0.5  # seconds, in total, for which the end of the process waits for the last hints

# Strong references: garbage collection in a child would end the parent's sessions.
_inherited: list[Transport] = []
_held_turns: list[threading.Lock] = []


def address() -> int:
    """Return the address of this process: a number below ``MAX_ADDRESSES``; a forked child has another one.

    In the unlikely case that two processes have the same address, both are woken. Also defined while hints are off.
    """
    return _own.address


def is_enabled() -> bool:
    """Return whether RESOURCEPOOL["HINTS"] selects a service; does not check whether it works."""
    return bool(setting("HINTS"))


def send(address: int, per_second: float = 0.0) -> None:
    """Send a hint to the process at ``address``; call it after the commit.

    Returns at once and never raises: a thread sends the hint, or drops it if the service is unavailable. No-op while
    hints are off.

    Args:
        per_second: approximate rate of such hints by all processes together; some services drop hints above a limit.
    """
    try:
        if is_enabled():
            _own.sender.send(_written(address), per_second)
    except BadOption:
        pass  # RESOURCEPOOL is not a dict: other code reports it


def after_commit(using: str, send_hints: Callable[..., object], *args: Any) -> None:
    """Call ``send_hints`` after the caller's transaction commits; never if autocommit is off."""
    connection = connections[using]
    if connection.in_atomic_block or connection.get_autocommit():

        def send_or_log() -> None:
            try:
                send_hints(*args)
            except (DatabaseError, InterfaceError, ResourcePoolError) as error:  # the commit has succeeded
                logger.warning("hints were not sent: %s", error)

        # Not ``robust``: Django would swallow exceptions of signal handlers.
        transaction.on_commit(send_or_log, using=using)


def listen(wake: Callable[[], object]) -> None:
    """Call ``wake()`` for every hint that reaches this process, from a background thread.

    It is also called after each new connection, because hints may have been lost, and sometimes without a reason. It
    must be quick. Registering it twice has no effect. A forked child must call ``listen`` itself. While hints are off,
    ``wake`` is registered, but not called.

    Raises:
        BadOption: this process cannot use the service, for example because its client is not installed.
    """
    _own.listener.listen(wake)


def flush(seconds: float) -> None:
    """Wait up to ``seconds`` until all hints so far are sent or dropped."""
    _own.sender.flush(seconds)


def flush_at_exit() -> None:
    """``flush`` at the end of the process."""
    began = monotonic()
    flush(_own.exit_timeout)
    _own.exit_timeout = max(0.0, _own.exit_timeout - (monotonic() - began))


class _Process:
    def __init__(self) -> None:
        self.address = 1 + secrets.randbelow(MAX_ADDRESSES - 1)
        self.exit_timeout = EXIT_TIMEOUT
        self.sender = Sender()
        self.listener = Listener(_written(self.address))


def _written(address: int) -> str:
    return f"{address:08x}"


def _before_fork() -> None:
    turns = (_own.sender.turn, _own.listener.turn)
    _held_turns.extend(turn for turn in turns if turn.acquire(timeout=FORK_TIMEOUT / 2))


def _after_fork_in_parent() -> None:
    while _held_turns:
        _held_turns.pop().release()


def _after_fork_in_child() -> None:
    for transport in (_own.sender.transport, _own.listener.transport):
        if transport:
            _inherited.append(transport)
            transport.abandon()
    _held_turns.clear()
    _own.__init__()  # type: ignore[misc]


_own = _Process()
# Registered before the functions that release leases at exit, so called after them.
atexit.register(flush_at_exit)
os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)


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

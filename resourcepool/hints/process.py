"""This process's own address, sender and listener; a forked child begins with its own."""

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
from resourcepool.hints.listener import Listener
from resourcepool.hints.sender import Sender
from resourcepool.hints.transport import Transport

logger = logging.getLogger(__name__)

FORK_TIMEOUT = 0.2  # seconds for which a fork waits for what the threads are saying
MAX_ADDRESSES = 2**23  # addresses: what a hand-over tells is one of them and a ticket in one number of 63 bits
EXIT_TIMEOUT = 0.5  # seconds for which the end of the process waits for the last hints, however often it asks

_inherited: list[
    Transport
] = []  # strong references: collected in a child, they would end the parent's sessions
_held_turns: list[threading.Lock] = []


def address() -> int:
    """Return where hints reach this process: a number below ``MAX_ADDRESSES``, another one for each forked child.

    Two processes may have the same, though that is unlikely: then both are woken. Also there when hints are off.
    """
    return _own.address


def is_enabled() -> bool:
    """Return whether RESOURCEPOOL["HINTS"] chooses something; whether that works is not asked here."""
    return bool(setting("HINTS"))


def send(address: int, per_second: float = 0.0) -> None:
    """Tell the process at ``address`` to look now; call it after the commit.

    Returns at once and never raises: a thread sends it, or drops it when the service is away. No-op when hints are off.

    Args:
        per_second: how many hints of this kind all processes send together, about; some services drop too many.
    """
    try:
        if is_enabled():
            _own.sender.send(_written(address), per_second)
    except BadOption:
        pass  # RESOURCEPOOL is no dict: said wherever it is used


def after_commit(using: str, tell: Callable[..., object], *given: Any) -> None:
    """Call ``tell``, which sends hints, once what the caller has written counts; never if autocommit is off."""
    connection = connections[using]
    if connection.in_atomic_block or connection.get_autocommit():

        def told() -> None:
            try:
                tell(*given)
            except (DatabaseError, InterfaceError, ResourcePoolError) as error:  # what was committed counts
                logger.warning("nobody was told: %s", error)

        # Not ``robust``: Django would swallow what a signal handler raises meanwhile.
        transaction.on_commit(told, using=using)


def listen(wake: Callable[[], object]) -> None:
    """Have ``wake()`` called for every hint that reaches this process, from a thread; twice the same counts once.

    It is also called after each new connection, because hints may have been lost, and now and then for nothing. It must
    be quick. A forked child calls ``listen`` for itself. Without effect, but remembered, while hints are off.

    Raises:
        BadOption: the service that is chosen cannot be used: its client is not installed, for example.
    """
    _own.listener.listen(wake)


def stop_listening() -> None:
    """Close the listener's session, which else stays open until the process ends; ``listen`` opens it again."""
    _own.listener.stop()


def flush(seconds: float) -> None:
    """Wait until the hints sent so far are sent or dropped, for so many seconds at most."""
    _own.sender.flush(seconds)


def flush_at_exit() -> None:
    """``flush`` at the end of the process."""
    began = monotonic()
    flush(_own.exit_timeout)
    _own.exit_timeout = max(0.0, _own.exit_timeout - (monotonic() - began))


class _Process:
    """What every process has its own of."""

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
# Registered before anything that releases at the end, so called after that.
atexit.register(flush_at_exit)
os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)

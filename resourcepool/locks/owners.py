"""Who holds what in this process: a thread, or a task of asyncio, which may take a lock of its own again."""

import asyncio
import itertools
import os
import threading
from collections.abc import MutableMapping
from typing import Any
from weakref import WeakKeyDictionary

from resourcepool.leases.terms import MAX_LENGTH, default_holder

Key = tuple[Any, str, str]  # model, database, name
MARK = "@"  # in a holder, before the number of the owner

_held: WeakKeyDictionary[Any, dict[Key, Any]] = WeakKeyDictionary()
_numbers: MutableMapping[Any, int] = WeakKeyDictionary()
_next = itertools.count(1)


def current() -> Any:
    """Return the running task of asyncio, or else the thread."""
    # Without a loop ``current_task`` alone would raise, which takes longer than all the rest.
    loop = asyncio._get_running_loop()
    return (asyncio.current_task(loop) if loop else None) or threading.current_thread()


def is_task() -> bool:
    """Whether the caller is a task of asyncio."""
    return isinstance(current(), asyncio.Task)


def number_of(owner: Any) -> str:
    """Return the number of ``owner``, as a holder tells it."""
    return str(_numbers.get(owner) or _numbers.setdefault(owner, next(_next)))


def holder_of(owner: Any) -> str:
    """Return a name for a request of ``owner``: unique, as ``default_holder``, and it tells the owner by a number."""
    return f"{default_holder()}{MARK}{number_of(owner)}"[-MAX_LENGTH:]


def owner_in(holder: str) -> tuple[str, str]:
    """Return what all requests of one owner have in common: its process incarnation, and its number; "" if unknown."""
    incarnation, _, rest = holder.rpartition("/")[2].partition(".")
    return incarnation, rest.partition(MARK)[2]


def held_by(owner: Any) -> dict[Key, Any]:
    """Return what ``owner`` holds: {(model, database, name): hold}, to be changed by the owner."""
    mine = _held.get(owner)
    return _held.setdefault(owner, {}) if mine is None else mine


def forget() -> None:
    """Forget what each owner holds: it is being released. Those who wait at this moment will note what they get."""
    for reference in _held.keyrefs():
        if (owner := reference()) is not None:
            held_by(owner).clear()


def _after_fork() -> None:
    _held.clear()  # the parent's
    _numbers.clear()


os.register_at_fork(after_in_child=_after_fork)

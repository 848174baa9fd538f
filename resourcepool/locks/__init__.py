"""Distributed locks and what is built of them, by name: ``from resourcepool.locks import Lock``."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from resourcepool.locks.channels.channel import Channel
    from resourcepool.locks.conditions.barrier import Barrier
    from resourcepool.locks.conditions.condition import Condition
    from resourcepool.locks.familiar import cache_lock
    from resourcepool.locks.hold import Hold
    from resourcepool.locks.lock import Lock
    from resourcepool.locks.releasing import arelease_all, release_all
    from resourcepool.locks.rwlock.lock import RWLock
    from resourcepool.locks.semaphore import Semaphore

__all__ = [
    "Barrier",
    "Channel",
    "Condition",
    "Hold",
    "Lock",
    "RWLock",
    "Semaphore",
    "arelease_all",
    "cache_lock",
    "release_all",
]

_PLACES = {
    "Barrier": "conditions.barrier",
    "Channel": "channels.channel",
    "Condition": "conditions.condition",
    "Hold": "hold",
    "Lock": "lock",
    "RWLock": "rwlock.lock",
    "Semaphore": "semaphore",
    "arelease_all": "releasing",
    "cache_lock": "familiar",
    "release_all": "releasing",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is: Django imports this package before there are models."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)

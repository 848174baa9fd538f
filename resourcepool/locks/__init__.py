"""Distributed locks and other primitives, by name: ``from resourcepool.locks import Lock``."""

from typing import TYPE_CHECKING

from resourcepool.lazy import lazy_names

__all__ = [
    "Barrier",
    "Channel",
    "Condition",
    "Hold",
    "Lock",
    "RWLock",
    "Semaphore",
    "arelease_all",
    "release_all",
]

if TYPE_CHECKING:
    from resourcepool.locks.barrier import Barrier
    from resourcepool.locks.bulk_release import arelease_all, release_all
    from resourcepool.locks.channels.channel import Channel
    from resourcepool.locks.condition import Condition
    from resourcepool.locks.lock import Lock
    from resourcepool.locks.lockable import Hold
    from resourcepool.locks.rwlock import RWLock
    from resourcepool.locks.semaphore import Semaphore
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Barrier": "barrier",
            "Channel": "channels.channel",
            "Condition": "condition",
            "Hold": "lockable",
            "Lock": "lock",
            "RWLock": "rwlock",
            "Semaphore": "semaphore",
            "arelease_all": "bulk_release",
            "release_all": "bulk_release",
        },
    )

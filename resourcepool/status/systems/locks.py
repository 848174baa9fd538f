"""What the metrics show of locks, and where their alarms link to; commands and pages of locks are special."""

from typing import Any

from resourcepool.locks.models import Barrier, ConditionWaiter, Lock, RWLockPermit, SemaphorePermit
from resourcepool.status.alarm import ABOUT_LOCKS, AlarmKind
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.summary import lock_alarms, summary
from resourcepool.status.sections import LOCKS
from resourcepool.status.system import System, gauge


class LocksSystem(System):
    """The locks; an alarm names the kind of its lock."""

    def list_of_alarm(self, kind: AlarmKind, name: str) -> tuple[Any, dict[str, str]]:
        """See ``System``."""
        lock_kind, _space, name = name.partition(" ")
        return LockKind(lock_kind).model, {"status": "waited", "q": name}


SYSTEM = LocksSystem(
    name="locks",
    word="locks",
    viewed=(Lock, SemaphorePermit, RWLockPermit),
    details=(ConditionWaiter, Barrier),
    read=summary,
    figures=(
        gauge("holders", "Requests that hold a lock, a semaphore or a read-write lock.", "holders"),
        gauge("waiters", "Waiters for one.", "waiters"),
        gauge(
            "longest_wait_seconds",
            "Time for which the first of them has waited.",
            lambda one: one.longest_wait or 0,
        ),
        gauge("deadlocks", "Wait cycles.", lambda one: len(one.cycles)),
    ),
    alarms=lambda locks, limits: lock_alarms(locks, limits.oldest_wait),
    section=LOCKS,
    subject=ABOUT_LOCKS,
    alarm_operations=dict.fromkeys((AlarmKind.DEADLOCK, AlarmKind.LOCK_WAIT), ("revoke", "revoke-holder")),
)

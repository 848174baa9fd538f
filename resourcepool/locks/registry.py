"""Who holds what in this process: each thread, or task of asyncio, its locks; the process its permits of semaphores."""

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
    return str(_numbers.get(owner) or _numbers.setdefault(owner, next(_next)))


def holder_of(owner: Any) -> str:
    """Return a unique holder for a request of ``owner``, which ends in the owner's number."""
    return f"{default_holder()}{MARK}{number_of(owner)}"[-MAX_LENGTH:]


def owner_in(holder: str) -> tuple[str, str]:
    """Return the process incarnation and the number of the owner in a holder; "" if unknown."""
    incarnation, _, rest = holder.rpartition("/")[2].partition(".")
    return incarnation, rest.partition(MARK)[2]


def held_by(owner: Any) -> dict[Key, Any]:
    """Return the holds of ``owner`` by key, to be changed by the owner."""
    mine = _held.get(owner)
    return _held.setdefault(owner, {}) if mine is None else mine


def is_of_caller(hold: Any) -> bool:
    """Whether this thread (or task) acquired ``hold``."""
    return owner_in(hold.holder)[1] == number_of(current())


def forget() -> None:
    """Forget all holds: they are being released. A thread that waits now will note what it gets."""
    for reference in _held.keyrefs():
        if (owner := reference()) is not None:
            held_by(owner).clear()
    holds.forget()


class ProcessHolds:
    """The holds of semaphores by name, in the order in which the process got them: any thread may release them."""

    def __init__(self) -> None:
        self._all: dict[Key, list[Any]] = {}
        self._lock = threading.RLock()  # a signal handler may come in between

    def add(self, hold: Any) -> None:
        with self._lock:
            self._all.setdefault(hold.which, []).append(hold)

    def older(self, hold: Any) -> list[Any]:
        """Return the leases of rows that ``hold`` has under a higher fence: they were lost."""
        fences = {lease.pk: lease.fence for lease in hold.leases}
        with self._lock:
            mine = [lease for one in self._all.get(hold.which, ()) for lease in one.leases]
        return [lease for lease in mine if lease.fence < fences.get(lease.pk, 0)]

    def remove(self, hold: Any) -> bool:
        """Forget a hold; False: it was released before."""
        with self._lock:
            mine = self._all.get(hold.which, [])
            rest = [one for one in mine if one is not hold]
            if rest:
                self._all[hold.which] = rest
            else:
                self._all.pop(hold.which, None)
            return len(rest) < len(mine)

    def take(self, which: Key, count: int) -> list[Any] | int:
        """Take off ``count`` leases, or return how many there are if that is fewer.

        First the caller's, then others', and last those of open ``with`` blocks; of each the latest first.
        """
        with self._lock:
            mine = self._all.get(which, [])
            if (there_are := sum(len(hold.leases) for hold in mine)) < count:
                return there_are
            taken: list[Any] = []
            latest_first = mine[::-1]
            for hold in sorted(latest_first, key=lambda hold: (hold.is_of_block, not is_of_caller(hold))):
                lacking = count - len(taken)
                if not lacking:
                    break
                taken.extend(hold.leases[-lacking:])
                if len(hold.leases) > lacking:
                    hold.leases = hold.leases[:-lacking]
                else:
                    self.remove(hold)
            return taken

    def forget(self) -> None:
        with self._lock:
            self._all.clear()


def _after_fork() -> None:
    _held.clear()  # the parent's
    _numbers.clear()
    holds.__init__()  # type: ignore[misc]


holds = ProcessHolds()
os.register_at_fork(after_in_child=_after_fork)

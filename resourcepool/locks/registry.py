"""Who holds what in this process: locks by thread or asyncio task, permits of semaphores by process."""

import asyncio
import itertools
import os
import threading
import weakref
from collections import defaultdict
from typing import Any

from resourcepool.db.threads import per_process
from resourcepool.leases.terms import MAX_LENGTH, default_holder

Key = tuple[Any, str, str]  # model, database, name
OWNER_MARK = "@"  # precedes the owner's number in a holder

_next = itertools.count(1)


class Owner:
    """Identifies one thread or asyncio task, independent of the equality and lifetime of its object.

    Attributes:
        holds: its holds by key; only the thread or task itself changes it.
        number: its number in holders.
        task: None for a thread; then the owner is thread-local.
    """

    __slots__ = ("__weakref__", "holds", "number", "task")

    def __init__(self, task: "weakref.ref[asyncio.Task[Any]] | None" = None) -> None:
        self.holds: dict[Key, Any] = {}
        self.number, self.task = str(next(_next)), task
        _owners[self.number] = self

    @property
    def has_ended(self) -> bool:
        """Whether its task has finished or its loop is closed."""
        if self.task is None:
            return False
        task = self.task()
        return task is None or task.done() or task.get_loop().is_closed()


class _Thread(threading.local):
    """The owner of the calling thread; it ends with the thread, whose ident may be reused."""

    def __init__(self) -> None:
        self.owner = Owner()


def current_owner() -> Owner:
    """Return the owner for the running asyncio task, or else for the thread."""
    # Without a loop ``current_task`` would raise, which is slow.
    task = asyncio.current_task(loop) if (loop := asyncio._get_running_loop()) else None
    if task is None:
        return _thread.owner
    key = id(task)  # reused only after this task is gone, and its entry with it
    if key not in _tasks:
        _tasks[key] = Owner(weakref.ref(task, lambda _: _tasks.pop(key, None)))
    return _tasks[key]


def new_holder() -> str:
    """Return a unique holder for a request of the caller; it ends with the owner's number."""
    return f"{default_holder()}{OWNER_MARK}{current_owner().number}"[-MAX_LENGTH:]


def parse_holder(holder: str) -> tuple[str, str]:
    """Return the process incarnation and the owner's number in a holder; "" if missing."""
    incarnation, _, rest = holder.rpartition("/")[2].partition(".")
    return incarnation, rest.partition(OWNER_MARK)[2]


def has_ended(holder: str) -> bool:
    """Whether ``holder``, from this process, belongs to a thread or task that has ended."""
    number = parse_holder(holder)[1]
    owner = _owners.get(number)
    return bool(number) and (owner is None or owner.has_ended)


def is_of_caller(holder: str) -> bool:
    """Whether ``holder``, from this process, belongs to this thread (or task)."""
    return parse_holder(holder)[1] == current_owner().number


def forget() -> None:
    """Forget all holds, which are being released. Threads that wait now will register what they get."""
    for reference in _owners.valuerefs():
        if (owner := reference()) is not None:
            owner.holds.clear()
    holds.forget()


class ProcessHolds:
    """The holds of semaphores by name, in order of acquisition; any thread may release them."""

    def __init__(self) -> None:
        self._all: defaultdict[Key, list[Any]] = defaultdict(list)
        self._lock = threading.RLock()  # reentrant for signal handlers

    def add(self, hold: Any) -> None:
        with self._lock:
            self._all[hold.key].append(hold)

    def remove(self, hold: Any) -> bool:
        """Forget a hold; False: it was released before."""
        with self._lock:
            known = self._all.get(hold.key, [])
            if is_known := hold in known:
                known.remove(hold)
            if not known:
                self._all.pop(hold.key, None)
            return is_known

    def take(self, key: Key, count: int) -> list[Any] | int:
        """Remove and return ``count`` leases; if there are fewer, return their number and remove nothing.

        The caller's first, then others', then those of open ``with`` blocks; the latest first within each group.
        """
        with self._lock:
            known = self._all.get(key, [])
            if (available := sum(len(hold.leases) for hold in known)) < count:
                return available
            taken: list[Any] = []
            latest_first = known[::-1]
            for hold in sorted(
                latest_first, key=lambda hold: (hold.is_of_block, not is_of_caller(hold.holder))
            ):
                missing = count - len(taken)
                if not missing:
                    break
                taken.extend(hold.leases[-missing:])
                if len(hold.leases) > missing:
                    hold.leases = hold.leases[:-missing]
                else:
                    self.remove(hold)
            return taken

    def forget(self) -> None:
        with self._lock:
            self._all.clear()


_owners: weakref.WeakValueDictionary[str, Owner] = weakref.WeakValueDictionary()
_tasks: dict[int, Owner] = {}  # by id(task)
os.register_at_fork(after_in_child=_tasks.clear)  # they belong to the parent
os.register_at_fork(after_in_child=_owners.clear)
_thread = per_process(_Thread)  # last, because it adds an owner
holds = per_process(ProcessHolds)

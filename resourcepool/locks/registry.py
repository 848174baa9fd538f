"""Who holds what in this process: each thread, or task of asyncio, its locks; the process its permits of semaphores."""

import asyncio
import itertools
import os
import threading
import weakref
from typing import Any

from resourcepool.leases.terms import MAX_LENGTH, default_holder

Key = tuple[Any, str, str]  # model, database, name
OWNER_MARK = "@"  # in a holder, before the number of the owner

_next = itertools.count(1)


class Owner:
    """Stands for one thread, or task of asyncio, whatever its class calls equal and whoever keeps its object.

    Attributes:
        holds: what it holds, by key; changed by the thread or task alone.
        number: in its holders.
        task: None: a thread, whose owner goes with it.
    """

    __slots__ = ("__weakref__", "holds", "number", "task")

    def __init__(self, task: "weakref.ref[asyncio.Task[Any]] | None" = None) -> None:
        self.holds: dict[Key, Any] = {}
        self.number, self.task = str(next(_next)), task
        _owners[self.number] = self

    @property
    def has_ended(self) -> bool:
        """Whether its task will never run again."""
        if self.task is None:
            return False
        task = self.task()
        return task is None or task.done() or task.get_loop().is_closed()


class _Thread(threading.local):
    """The calling thread's owner. It goes when the thread ends, whose ident may be another thread's then."""

    def __init__(self) -> None:
        self.owner = Owner()


def current_owner() -> Owner:
    """Return the owner that stands for the running task of asyncio, or else for the thread."""
    task = _running_task()
    return _thread.owner if task is None else _tasks.get(id(task)) or _owner_of(task)


def is_task() -> bool:
    """Whether the caller is a task of asyncio."""
    return _running_task() is not None


def _running_task() -> Any:
    # Without a loop ``current_task`` alone would raise, which takes longer than all the rest.
    loop = asyncio._get_running_loop()
    return asyncio.current_task(loop) if loop else None


def _owner_of(task: Any) -> Owner:
    key = id(task)  # another task's only after this one is gone, and the entry with it
    owner = _tasks[key] = Owner(weakref.ref(task, lambda _: _tasks.pop(key, None)))
    return owner


def new_holder(owner: Owner) -> str:
    """Return a unique holder for a request of ``owner``, which ends in the owner's number."""
    return f"{default_holder()}{OWNER_MARK}{owner.number}"[-MAX_LENGTH:]


def has_ended(holder: str) -> bool:
    """Tell whether ``holder``, of this process, names a thread or a task that has ended."""
    number = parse_holder(holder)[1]
    owner = _owners.get(number)
    return bool(number) and (owner is None or owner.has_ended)


def parse_holder(holder: str) -> tuple[str, str]:
    """Return the process incarnation and the number of the owner in a holder; "" if unknown."""
    incarnation, _, rest = holder.rpartition("/")[2].partition(".")
    return incarnation, rest.partition(OWNER_MARK)[2]


def holds_of(owner: Owner) -> dict[Key, Any]:
    """Return the holds of ``owner`` by key, to be changed by the owner."""
    return owner.holds


def is_of_caller(hold: Any) -> bool:
    """Whether this thread (or task) acquired ``hold``."""
    return parse_holder(hold.holder)[1] == current_owner().number


def forget() -> None:
    """Forget all holds: they are being released. A thread that waits now will note what it gets."""
    for reference in _owners.valuerefs():
        if (owner := reference()) is not None:
            owner.holds.clear()
    holds.forget()


class ProcessHolds:
    """The holds of semaphores by name, in the order in which the process got them: any thread may release them."""

    def __init__(self) -> None:
        self._all: dict[Key, list[Any]] = {}
        self._lock = threading.RLock()  # a signal handler may come in between

    def add(self, hold: Any) -> None:
        with self._lock:
            self._all.setdefault(hold.key, []).append(hold)

    def superseded(self, hold: Any) -> list[Any]:
        """Return the leases of rows that ``hold`` has under a higher fence: they were lost."""
        fences = {lease.pk: lease.fence for lease in hold.leases}
        with self._lock:
            mine = [lease for one in self._all.get(hold.key, ()) for lease in one.leases]
        return [lease for lease in mine if lease.fence < fences.get(lease.pk, 0)]

    def remove(self, hold: Any) -> bool:
        """Forget a hold; False: it was released before."""
        with self._lock:
            mine = self._all.get(hold.key, [])
            rest = [one for one in mine if one is not hold]
            if rest:
                self._all[hold.key] = rest
            else:
                self._all.pop(hold.key, None)
            return len(rest) < len(mine)

    def take(self, key: Key, count: int) -> list[Any] | int:
        """Take off ``count`` leases, or return how many there are if that is fewer.

        First the caller's, then others', and last those of open ``with`` blocks; of each the latest first.
        """
        with self._lock:
            mine = self._all.get(key, [])
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
    global _thread  # noqa: PLW0603
    _tasks.clear()  # the parent's
    _owners.clear()
    _thread = _Thread()
    holds.__init__()  # type: ignore[misc]


_owners: weakref.WeakValueDictionary[str, Owner] = weakref.WeakValueDictionary()
_tasks: dict[int, Owner] = {}  # by the identity of the task
_thread = _Thread()
holds = ProcessHolds()
os.register_at_fork(after_in_child=_after_fork)

"""A read-write lock as the tests of it use it, and a reader beside them."""

from typing import Any

from resourcepool.locks import Hold, RWLock
from resourcepool.models import RWLockPermit
from tests.eventually import InBackground, elsewhere, eventually


def lock(**options: Any) -> RWLock:
    return RWLock("catalogue", **{"readers": 3, **options})


def permits() -> Any:
    return RWLockPermit.objects.filter(name="catalogue")


def can_read() -> bool:
    return elsewhere(lambda: tried(lock().read()))


def can_write() -> bool:
    return elsewhere(lambda: tried(lock().write()))


def tried(side: Any) -> bool:
    if side.acquire(blocking=False) is None:
        return False
    side.release()
    return True


def tried_to_write(**options: Any) -> bool:
    with lock(**options).write() as held:
        return held.is_held


def how_many(**options: Any) -> int:
    with lock(**options).write() as held:
        return len(held.leases)


class InBackgroundReader:
    """A reader in a thread of its own, until it is to release."""

    def __init__(self) -> None:
        self._is_over = False
        reads: list[Hold] = []

        def work() -> None:
            with lock().read() as held:
                reads.append(held)
                eventually(lambda: self._is_over)

        self._thread = InBackground(work)
        eventually(lambda: reads)

    def release(self) -> bool:
        self._is_over = True
        self._thread.result()
        return True

"""What nobody can release is not renewed for ever: of a thread that ended, or a caller that was interrupted."""

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest

from resourcepool.leases.keeper import keeper
from resourcepool.locks import Lock, RWLock, Semaphore, release_all
from resourcepool.locks.models import Lock as LockRow
from resourcepool.locks.registry import current_owner, holds
from resourcepool.models import RWLockPermit, SemaphorePermit
from tests.app.rows import expire
from tests.case_sample import EVERY
from tests.eventually import InBackground, eventually
from tests.interruptions import at_each_line, end


def heard(_: Any) -> None: ...


LOCKS: dict[str, Callable[[], Any]] = {
    "lock": lambda: Lock("report"),
    "lock with on_lost": lambda: Lock("report", on_lost=heard),
    "reader": lambda: RWLock("report", readers=2).read(),
    "writer": lambda: RWLock("report", readers=2).write(),
    "writer with on_lost": lambda: RWLock("report", readers=2, on_lost=heard).write(),
}
one_of_each = pytest.mark.parametrize("make", LOCKS.values(), ids=LOCKS)


def renewed() -> list[Any]:
    """Return what is renewed after a look for leases that nobody can release."""
    keeper._report_leaks("default")
    return keeper.leases()


@one_of_each
def test_a_thread_that_ends_gives_up_what_it_holds(make: Callable[[], Any]) -> None:
    InBackground(lambda: make().acquire() is not None).result()
    assert eventually(lambda: not renewed())


@one_of_each
def test_a_task_that_ends_gives_up_what_it_holds(make: Callable[[], Any]) -> None:
    async def take() -> None:
        await make().aacquire()

    asyncio.run(take())
    gc.collect()  # a task is part of cycles of asyncio's own
    assert eventually(lambda: not renewed())


@one_of_each
def test_a_thread_that_goes_on_keeps_it(make: Callable[[], Any]) -> None:
    side = make()
    side.acquire()
    assert renewed()
    side.release()


PERMITS = {"permits": lambda: Semaphore("seats", 2, on_lost=heard).acquire(n=2)}
ALSO = ("lock with on_lost", "reader", "writer")
TAKING = {**{name: lambda make=LOCKS[name]: make().acquire() for name in ALSO}, **PERMITS}


@pytest.mark.parametrize("take", TAKING.values(), ids=TAKING)
def test_what_an_interrupted_caller_has_not_got_is_let_go(take: Callable[[], Any]) -> None:
    def prepare() -> None:
        release_all()
        for model in (LockRow, RWLockPermit, SemaphorePermit):
            for row in model.objects.all():
                expire(row)  # what was let go
        assert eventually(lambda: not renewed())

    def look() -> None:
        take()
        end()

    for place in at_each_line(look, prepare, since=["_take"], every=EVERY):
        has_it = bool(current_owner().holds or holds._all)
        assert has_it or eventually(lambda: not renewed(), because=lambda place=place: place)
    prepare()


BOOKKEEPING = (
    "/locks/lock.py",
    "/locks/lockable.py",
    "/threads/sync_async.py",
    "/locks/rwlock",
    "/leases/keeper.py",
)
RELEASING = {name: LOCKS[name] for name in ("lock", "writer")}


@pytest.mark.parametrize("make", RELEASING.values(), ids=RELEASING)
def test_what_an_interrupted_release_has_not_given_back_is_let_go_or_released_again(
    make: Callable[[], Any],
) -> None:
    def prepare() -> None:
        release_all()
        for model in (LockRow, RWLockPermit, SemaphorePermit):
            for row in model.objects.all():
                expire(row)  # what was let go
        make().acquire()

    def release() -> None:
        make().release()
        end()

    for place in at_each_line(release, prepare, files=BOOKKEEPING, since=["release"], every=EVERY):
        if current_owner().holds:
            make().release()
        assert eventually(lambda: not renewed(), 5, because=lambda place=place: place)
    release_all()

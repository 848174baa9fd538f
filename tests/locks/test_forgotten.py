"""What nobody can release is not renewed for ever: of a thread that ended, or a caller that was interrupted."""

from collections.abc import Callable
from traceback import walk_tb
from typing import Any

import pytest

from resourcepool.exceptions import LeaseLost
from resourcepool.locks import Condition, Hold, Lock, RWLock, Semaphore, release_all
from resourcepool.locks.models import Lock as LockRow
from resourcepool.locks.registry import current_owner, holds
from resourcepool.models import RWLockPermit, SemaphorePermit
from tests.app.rows import expire, steal
from tests.case_sample import EVERY
from tests.eventually import eventually
from tests.interruptions import at_each_line, end
from tests.locks.test_owners import renewed
from tests.queues.members import create_queue_group, join

TAKING: dict[str, Callable[[], Any]] = {
    "lock with on_lost": lambda: Lock("report", on_lost=id).acquire(),
    "reader": lambda: RWLock("report", readers=2).read().acquire(),
    "writer": lambda: RWLock("report", readers=2).write().acquire(),
    "permits": lambda: Semaphore("seats", 2, on_lost=id).acquire(n=2),
}
BOOKKEEPING = "/locks/lock.py", "/locks/lockable.py", "/db/sync_async.py", "/locks/rwlock", "/leases/keeper.py"
RELEASING: dict[str, Callable[[], Any]] = {
    "lock": lambda: Lock("report"),
    "writer": lambda: RWLock("report", readers=2).write(),
}


def begin_anew() -> None:
    release_all()
    for model in (LockRow, RWLockPermit, SemaphorePermit):
        for row in model.objects.all():
            expire(row)  # what was let go
    assert eventually(lambda: not renewed())


@pytest.mark.parametrize("take", TAKING.values(), ids=TAKING)
def test_what_an_interrupted_caller_has_not_got_is_let_go(take: Callable[[], Any]) -> None:
    def look() -> None:
        take()
        end()

    for place in at_each_line(look, begin_anew, since=["_take"], every=EVERY):
        has_it = bool(current_owner().holds or holds._all)
        assert has_it or eventually(lambda: not renewed(), because=lambda place=place: place)
    begin_anew()


@pytest.mark.parametrize("make", RELEASING.values(), ids=RELEASING)
def test_what_an_interrupted_release_has_not_given_back_is_let_go_or_released_again(
    make: Callable[[], Any],
) -> None:
    def prepare() -> None:
        begin_anew()
        make().acquire()

    def release() -> None:
        make().release()
        end()

    for place in at_each_line(release, prepare, files=BOOKKEEPING, since=["release"], every=EVERY):
        if current_owner().holds:
            make().release()
        assert eventually(lambda: not renewed(), 5, because=lambda place=place: place)
    release_all()


# The event of a hold is the same one for as long as the hold lasts, whatever becomes of its rows meanwhile.


def lose(hold: Hold) -> None:
    lease = hold.leases[0]
    steal(lease.model.objects.get(pk=lease.pk))
    lease._lose("stolen")


def test_of_a_semaphore_when_some_permits_were_released() -> None:
    semaphore = Semaphore("seats", 3)
    hold: Any = semaphore.acquire(n=2)
    told = hold.lost
    semaphore.release()
    lose(hold)
    assert eventually(told.is_set)
    assert hold.lost is told


def test_of_a_lock_that_a_wait_has_taken_back() -> None:
    lock = Lock("orders")
    hold: Any = lock.acquire()
    told = hold.lost
    assert not Condition(lock).wait(timeout=0.01)
    lose(hold)
    assert eventually(told.is_set)
    assert hold.lost is told


def raised(ask: Callable[[], object]) -> LeaseLost:
    with pytest.raises(LeaseLost) as caught:
        ask()
    return caught.value


def test_an_error_that_is_raised_again_and_again_does_not_keep_what_raised_it_before() -> None:
    create_queue_group()
    server = join("a")
    server.turn()
    (queue, *_) = server.held
    server.lose_all(LeaseLost("stood still"))
    lock, side = Lock("orders"), RWLock("catalogue").read()
    hold, read = lock.acquire(), side.acquire()
    assert hold is not None
    assert read is not None
    for one in (hold, read):
        lose(one)
        eventually(one.lost.is_set)
    for ask in (hold.ensure_held, hold.leases[0].release, read.ensure_held, queue.ensure_held):
        frames = [len(list(walk_tb(raised(ask).__traceback__))) for _ in range(3)]
        assert len(set(frames)) == 1, (ask, frames)
    for held in (lock, side):
        raised(held.release)

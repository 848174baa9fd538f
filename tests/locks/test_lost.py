"""The event of a hold is the same one for as long as the hold lasts, whatever becomes of its rows meanwhile."""

from collections.abc import Callable
from traceback import walk_tb

import pytest

from resourcepool.exceptions import LeaseLost
from resourcepool.locks import Condition, Hold, Lock, RWLock, Semaphore
from tests.app.rows import steal
from tests.eventually import eventually
from tests.queues.members import create_queue_group, join


def lose(hold: Hold) -> None:
    lease = hold.leases[0]
    steal(lease.model.objects.get(pk=lease.pk))
    lease._lose("stolen")


def test_of_a_semaphore_when_some_permits_were_released() -> None:
    semaphore = Semaphore("seats", 3)
    hold = semaphore.acquire(n=2)
    assert hold is not None
    told = hold.lost
    semaphore.release()
    lose(hold)
    assert eventually(told.is_set)
    assert hold.lost is told


def test_of_a_lock_that_a_wait_has_taken_back() -> None:
    lock = Lock("orders")
    hold = lock.acquire()
    assert hold is not None
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

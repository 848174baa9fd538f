"""The event of a hold is the same one for as long as the hold lasts, whatever becomes of its rows meanwhile."""

from resourcepool.locks import Condition, Hold, Lock, Semaphore
from tests.app.rows import steal
from tests.eventually import eventually


def lose(hold: Hold) -> None:
    lease = hold.leases[0]
    steal(lease.model.objects.get(pk=lease.pk))
    lease.lose("stolen")


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

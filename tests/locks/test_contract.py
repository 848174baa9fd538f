"""What all kinds of lock promise: a lock, a semaphore of one permit, a read-write lock of one reader."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from resourcepool.exceptions import AcquireTimeout, BadOption, ClaimInTransaction, LeaseLost, NotHeld
from resourcepool.locks import Hold, Lock, RWLock, Semaphore
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import RWLockPermit, SemaphorePermit, Ticket
from tests.app.rows import expire, steal
from tests.eventually import InBackground, elsewhere, eventually

Make = Callable[..., Any]
KINDS: dict[str, Make] = {
    "lock": lambda name="one", **options: Lock(name, **options),
    "semaphore": lambda name="one", **options: Semaphore(name, 1, **options),
    "reader": lambda name="one", **options: RWLock(name, readers=1, **options).read(),
    "writer": lambda name="one", **options: RWLock(name, readers=1, **options).write(),
}
each = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
OF_ONE_THREAD = ("lock", "reader", "writer")
each_of_one_thread = pytest.mark.parametrize("make", [KINDS[name] for name in OF_ONE_THREAD], ids=OF_ONE_THREAD)


def row() -> Any:
    """The only row that there is, whatever its kind."""
    (found,) = (one for model in (LockRow, SemaphorePermit, RWLockPermit) for one in model.objects.all())
    return found


def held_by_the_dead(make: Make) -> Any:
    with make():
        pass
    steal(row())
    waits = InBackground(make().acquire)
    eventually(Ticket.objects.waiting().exists)
    return waits


@each
def test_one_holds_it_until_the_release(make: Make) -> None:
    with make() as held:
        assert held.is_held
        assert elsewhere(lambda: make().acquire(blocking=False)) is None
        with pytest.raises(AcquireTimeout, match="'one'"):
            elsewhere(lambda: make(timeout=0).__enter__())
    assert not held.is_held
    with make().acquire() as again:
        assert again.is_held
    assert not again.is_held
    assert elsewhere(lambda: make().acquire(blocking=False)) is not None


@each
def test_names_are_told_apart(make: Make) -> None:
    with make("a"), make("A"), make("a#0"), make("a a"), make("日本"):
        pass


@each
def test_the_fence_goes_up_with_every_holder(make: Make) -> None:
    fences = []
    for _ in range(3):
        with make() as held:
            fences.append(held.fence)
    assert fences == sorted(set(fences))


@each
def test_a_transaction_commits_only_while_it_is_held(make: Make) -> None:
    with pytest.raises(LeaseLost), make() as held:
        with transaction.atomic(), held.guard():
            pass
        steal(row())
        with transaction.atomic(), held.guard():
            pytest.fail("it was lost")


@each
def test_it_is_not_taken_in_an_open_transaction(make: Make) -> None:
    with transaction.atomic(), pytest.raises(ClaimInTransaction):
        make().acquire()


@each
def test_a_function_runs_under_it(make: Make) -> None:
    @make()
    def work(number: int) -> int:
        assert elsewhere(lambda: make().acquire(blocking=False)) is None
        return number + 1

    assert work(1) == 2
    assert elsewhere(lambda: make().acquire(blocking=False)) is not None


@each
def test_what_is_not_held_is_not_released(make: Make) -> None:
    with pytest.raises(NotHeld, match=r"h[eo]ld"):
        make().release()


@each_of_one_thread
def test_another_thread_cannot_release_it(make: Make) -> None:
    with make() as held:
        with pytest.raises(NotHeld, match="thread"):
            elsewhere(make().release)
        assert not elsewhere(lambda: make().owned())
        assert held.is_held


@each_of_one_thread
def test_its_holder_takes_it_again_and_releases_it_as_often(make: Make) -> None:
    with make() as outer:
        with make() as inner:
            assert inner is outer
            assert make().owned()
        assert outer.is_held
        assert elsewhere(lambda: make().acquire(blocking=False)) is None
    assert not make().owned()
    assert elsewhere(lambda: make().acquire(blocking=False)) is not None


@each_of_one_thread
def test_a_timeout_tells_who_has_it(make: Make) -> None:
    with make() as held, pytest.raises(AcquireTimeout, match=r"within 0\.05 s: held by") as error:
        elsewhere(lambda: make(timeout=0.05).__enter__())
    assert held.holder in str(error.value)


@each
def test_its_holder_is_told_that_it_is_lost(make: Make) -> None:
    heard: list[Hold] = []
    held = make(on_lost=heard.append).acquire()
    steal(row())
    with pytest.raises(LeaseLost):
        held.leases[0].renew()
    eventually(lambda: heard == [held])
    assert held.lost.is_set()
    assert (held.is_held, held.remaining) == (False, 0.0)
    with pytest.raises(LeaseLost):
        held.ensure_held()


@each_of_one_thread
def test_taking_it_again_after_it_was_lost_says_so_and_the_last_release_too(make: Make) -> None:
    one = make()
    one.acquire()
    held = one.acquire()
    held.leases[0]._lose("taken")
    assert not one.owned()
    with pytest.raises(LeaseLost):
        one.acquire()
    one.release()
    with pytest.raises(LeaseLost):
        one.release()
    with pytest.raises(NotHeld):
        one.release()


@each
def test_a_release_in_a_transaction_takes_effect_at_its_commit(make: Make) -> None:
    held = make().acquire()
    with transaction.atomic():
        held.release()
        assert not held.is_held
    assert elsewhere(lambda: make().acquire(blocking=False)) is not None


@each
def test_an_error_in_the_block_is_not_hidden_by_the_loss(make: Make) -> None:
    with pytest.raises(ZeroDivisionError), make():
        steal(row())
        raise ZeroDivisionError


@each
def test_the_first_in_line_has_it_at_once(make: Make) -> None:
    with make() as held:
        waits = InBackground(make().acquire)
        eventually(Ticket.objects.waiting().exists)
    assert waits.result().fence > held.fence


@each
def test_it_comes_free_when_its_holder_has_died_for_those_who_wait(make: Make) -> None:
    waits = held_by_the_dead(make)
    expire(row())
    assert make().acquire(blocking=False) is None
    assert waits.result()


@each
def test_rows_that_were_swept_while_somebody_waits_are_made_again(make: Make) -> None:
    waits = held_by_the_dead(make)
    row().delete()
    assert waits.result()


@each
def test_a_timeout_without_blocking_is_refused(make: Make) -> None:
    with pytest.raises(BadOption, match="timeout=5"):
        make().acquire(blocking=False, timeout=5)


@each
def test_a_task_holds_it(make: Make) -> None:
    async def work() -> None:
        async with await make().aacquire() as held:
            assert held.is_held
            assert await asyncio.create_task(make().aacquire(blocking=False)) is None
            waits = asyncio.create_task(make().aacquire(timeout=30))
            await asyncio.sleep(0)
        assert not held.is_held
        assert await waits


@each_of_one_thread
def test_a_task_takes_it_again_and_no_other_task_releases_it(make: Make) -> None:
    async def work() -> None:
        async with make() as held:
            async with make() as again:
                assert again is held
            with pytest.raises(NotHeld, match="task"):
                await asyncio.create_task(make().arelease())

    asyncio.run(work())

    asyncio.run(work())

"""A lock: one thread of all processes holds it, and may take it again."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from asgiref.sync import markcoroutinefunction
from django.db import transaction

from resourcepool.exceptions import AcquireTimeout, BadOption, ClaimInTransaction, LeaseLost, NotHeld
from resourcepool.locks import Hold, Lock
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import Ticket
from tests.app.rows import expire, steal
from tests.eventually import InBackground, eventually


def row(name: str = "report") -> LockRow:
    return LockRow.objects.get(pk=name)


def elsewhere(work: Any) -> Any:
    return InBackground(work).result()


class TestHolding:
    def test_one_holds_it_until_the_release(self) -> None:
        with Lock("report") as held:
            assert held.is_held
            assert elsewhere(lambda: Lock("report").acquire(blocking=False)) is None
            with pytest.raises(AcquireTimeout, match="lock 'report' did not become free within 0 s"):
                elsewhere(lambda: Lock("report", timeout=0).__enter__())
        assert not held.is_held
        assert elsewhere(lambda: Lock("report").acquire(blocking=False)) is not None

    def test_what_acquire_returns_is_released_at_the_end_of_its_block(self) -> None:
        lock = Lock("report")
        with lock.acquire() as held:  # type: ignore[union-attr]  # None: another thread has it
            with lock.acquire() as again:  # type: ignore[union-attr]
                assert again is held
            assert held.is_held
        assert not lock.locked()
        with pytest.raises(NotHeld):
            held.release()

    def test_different_names_are_different_locks_and_so_are_upper_and_lower_case(self) -> None:
        with Lock("a"), Lock("A"), Lock("a a"), Lock("日本"):
            assert LockRow.objects.count() == 4

    def test_it_says_who_holds_it(self) -> None:
        lock = Lock("report")
        assert lock.holder() is None
        with lock as held:
            holder = Lock("report").holder()
            assert holder is not None
            assert (holder.holder, holder.fence) == (held.holder, held.fence)
            assert lock.locked()
        assert not lock.locked()

    def test_contenders_are_the_holder_and_those_who_wait(self) -> None:
        assert Lock("report").contenders() == []
        with Lock("report") as held:
            assert Lock("report").contenders() == [held.holder]

    def test_the_fence_goes_up_with_every_holder(self) -> None:
        fences = []
        for _ in range(3):
            with Lock("report") as held:
                fences.append(held.fence)
        assert fences == sorted(set(fences))

    def test_a_transaction_commits_only_while_it_is_held(self) -> None:
        with pytest.raises(LeaseLost), Lock("report") as held:
            with transaction.atomic(), held.guard():
                pass
            steal(row())
            with transaction.atomic(), held.guard():
                pytest.fail("it was lost")

    def test_it_is_not_taken_in_an_open_transaction(self) -> None:
        with transaction.atomic(), pytest.raises(ClaimInTransaction):
            Lock("report").acquire()

    def test_a_function_runs_under_it(self) -> None:
        @Lock("report")
        def work(number: int) -> int:
            assert Lock("report").owned()
            return number + 1

        assert work(1) == 2
        assert not Lock("report").locked()


class TestTakingItAgain:
    def test_its_holder_takes_it_again_and_releases_it_as_often(self) -> None:
        first, second = Lock("report"), Lock("report")
        with first as outer, second as inner:
            assert inner is outer
            assert second.owned()
            second.acquire()
            second.release()
            assert elsewhere(lambda: Lock("report").acquire(blocking=False)) is None
        assert not first.owned()
        assert not first.locked()

    def test_another_thread_is_another_holder(self) -> None:
        with Lock("report"):
            assert not elsewhere(lambda: Lock("report").owned())

    def test_taking_it_again_after_it_was_lost_says_so(self) -> None:
        lock = Lock("report")
        lock.acquire()
        held = lock.acquire()
        assert held is not None
        steal(row())
        with pytest.raises(LeaseLost):
            held.leases[0].renew()
        with pytest.raises(LeaseLost):
            lock.acquire()
        lock.release()
        with pytest.raises(LeaseLost):
            lock.release()
        with pytest.raises(NotHeld):
            lock.release()


class TestReleasing:
    def test_what_is_not_held_is_not_released(self) -> None:
        with pytest.raises(NotHeld, match="is not held by this thread"):
            Lock("report").release()

    def test_another_thread_cannot_release_it(self) -> None:
        with Lock("report") as held:
            with pytest.raises(RuntimeError, match="not held"):
                elsewhere(Lock("report").release)
            assert held.is_held

    def test_an_error_in_the_block_is_not_hidden_by_the_loss(self) -> None:
        with pytest.raises(ZeroDivisionError), Lock("report"):
            steal(row())
            raise ZeroDivisionError

    def test_a_thread_that_ends_without_releasing_it_gives_it_up(self) -> None:
        def forget() -> None:
            Lock("report", ttl=0.5).acquire()

        elsewhere(forget)
        assert Lock("report").acquire(timeout=30) is not None


class TestWaiting:
    def test_the_first_in_line_has_it_at_once(self) -> None:
        with Lock("report") as held:
            waits = InBackground(Lock("report").acquire)
            eventually(Ticket.objects.filter(pool="resourcepool.lock:report").exists)
        follower = waits.result()
        assert follower.fence > held.fence

    def test_who_waits_for_one_lock_is_no_matter_to_another(self) -> None:
        with Lock("a"):
            waits = InBackground(Lock("a").acquire)
            eventually(Ticket.objects.waiting().exists)
            with Lock("b"):
                pass
            assert row("b").holder == ""
            assert Ticket.objects.waiting().count() == 1
        assert waits.result() is not None

    def test_it_comes_free_when_its_holder_has_died(self) -> None:
        steal(LockRow.objects.create(pk="report"))
        waits = InBackground(Lock("report").acquire)
        eventually(Ticket.objects.waiting().exists)
        expire(row())
        assert waits.result()

    def test_a_timeout_names_who_has_it(self) -> None:
        with Lock("report") as held, pytest.raises(AcquireTimeout, match="held by") as error:
            elsewhere(lambda: Lock("report", timeout=0.05).__enter__())
        assert held.holder in str(error.value)

    def test_who_does_not_wait_is_served_after_those_who_do(self) -> None:
        steal(LockRow.objects.create(pk="report"))
        waits = InBackground(Lock("report").acquire)
        eventually(Ticket.objects.waiting().exists)
        expire(row())
        assert Lock("report").acquire(blocking=False) is None
        assert waits.result() is not None

    def test_a_row_that_was_swept_while_somebody_waits_is_made_again(self) -> None:
        steal(LockRow.objects.create(pk="report"))
        waits = InBackground(Lock("report").acquire)
        eventually(Ticket.objects.waiting().exists)
        LockRow.objects.all().delete()
        assert waits.result()


class TestAsyncio:
    def test_what_aacquire_returns_is_released_at_the_end_of_its_block(self) -> None:
        async def work() -> bool:
            async with await Lock("report").aacquire():  # type: ignore[union-attr]
                return Lock("report").owned()

        assert asyncio.run(work())
        assert not Lock("report").locked()

    def test_a_task_holds_it(self) -> None:
        async def work() -> None:
            async with Lock("report") as held:
                async with Lock("report") as again:
                    assert again is held
                assert await asyncio.create_task(Lock("report").aacquire(blocking=False)) is None
                waits = asyncio.create_task(Lock("report").aacquire(timeout=30))
                await asyncio.sleep(0)
            follower = await waits
            assert isinstance(follower, Hold)
            with pytest.raises(NotHeld, match="task"):
                await Lock("report").arelease()

        asyncio.run(work())

    def test_a_coroutine_function_runs_under_it(self) -> None:
        @Lock("report")
        async def work() -> bool:
            return Lock("report").owned()

        assert asyncio.run(work())

    def test_an_object_whose_call_is_a_coroutine_runs_under_it(self) -> None:
        class Work:
            async def __call__(self) -> bool:
                return Lock("report").owned()

        assert asyncio.run(Lock("report")(Work())())

    def test_a_function_that_is_marked_as_one_such_as_an_asynchronous_view_runs_under_it(self) -> None:
        async def work() -> bool:
            return Lock("report").owned()

        def view() -> Coroutine[Any, Any, bool]:
            return work()

        assert asyncio.run(Lock("report")(markcoroutinefunction(view))())

    def test_what_would_run_after_the_call_is_refused(self) -> None:
        def pages() -> Iterator[int]:
            yield 1

        async def apages() -> AsyncIterator[int]:
            yield 1

        for function in (pages, apages, partial(pages), 5):
            with pytest.raises(BadOption, match="function="):
                Lock("report")(function)  # type: ignore[arg-type]


class TestBadInput:
    @pytest.mark.parametrize("name", ["", "x" * 201, "two\nlines", 5, None, b"x", " x", "x "])
    def test_a_bad_name_is_refused(self, name: Any) -> None:
        with pytest.raises(BadOption, match="name="):
            Lock(name)

    @pytest.mark.parametrize(
        ("option", "value"),
        [("ttl", 0), ("ttl", float("nan")), ("timeout", -2), ("timeout", "5"), ("on_lost", 5), ("ttl", True)],
    )
    def test_a_bad_option_is_refused(self, option: str, value: Any) -> None:
        with pytest.raises(BadOption, match=f"{option}="):
            Lock("report", **{option: value})

    def test_a_timeout_without_blocking_is_refused(self) -> None:
        with pytest.raises(BadOption, match="timeout=5"):
            Lock("report").acquire(blocking=False, timeout=5)

    def test_seconds_and_timedeltas_are_allowed(self) -> None:
        with Lock("report", ttl=timedelta(seconds=5), timeout=timedelta(seconds=1)) as held:
            assert held.remaining <= 5


def test_on_lost_is_called_with_the_hold() -> None:
    heard: list[Hold] = []
    held = Lock("report", on_lost=heard.append).acquire()
    assert held is not None
    steal(row())
    with pytest.raises(LeaseLost):
        held.leases[0].renew()
    eventually(lambda: heard == [held])
    assert held.lost.is_set()

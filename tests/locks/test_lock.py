"""A lock: one thread of all processes holds it, and may take it again."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from asgiref.sync import markcoroutinefunction

from resourcepool.exceptions import AcquireTimeout, BadOption, LeaseLost, NotHeld
from resourcepool.locks import Hold, Lock
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import Ticket
from tests.app.rows import steal
from tests.eventually import InBackground, eventually


def row(name: str = "report") -> LockRow:
    return LockRow.objects.get(pk=name)


def elsewhere(work: Any) -> Any:
    return InBackground(work).result()


class TestHolding:
    def test_what_acquire_returns_is_released_at_the_end_of_its_block(self) -> None:
        lock = Lock("report")
        with lock.acquire() as held:  # type: ignore[union-attr]  # None: another thread has it
            with lock.acquire() as again:  # type: ignore[union-attr]
                assert again is held
            assert held.is_held
        assert not lock.locked()
        with pytest.raises(NotHeld):
            held.release()

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
    def test_a_thread_that_ends_without_releasing_it_gives_it_up(self) -> None:
        def forget() -> None:
            Lock("report", ttl=0.5).acquire()

        elsewhere(forget)
        assert Lock("report").acquire(timeout=30) is not None


class TestWaiting:
    def test_who_waits_for_one_lock_is_no_matter_to_another(self) -> None:
        with Lock("a"):
            waits = InBackground(Lock("a").acquire)
            eventually(Ticket.objects.waiting().exists)
            with Lock("b"):
                pass
            assert row("b").holder == ""
            assert Ticket.objects.waiting().count() == 1
        assert waits.result() is not None

    def test_a_timeout_names_who_has_it(self) -> None:
        with Lock("report") as held, pytest.raises(AcquireTimeout, match="held by") as error:
            elsewhere(lambda: Lock("report", timeout=0.05).__enter__())
        assert held.holder in str(error.value)


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

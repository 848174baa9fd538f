"""A lock: one thread of all processes holds it; what it tells of its holder, and what it decorates."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from asgiref.sync import markcoroutinefunction

from resourcepool.exceptions import BadOption
from resourcepool.locks import Lock, RWLock, Semaphore
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import Ticket
from tests.eventually import InBackground, eventually


class TestHolding:
    def test_it_tells_who_holds_it(self) -> None:
        lock = Lock("report")
        assert (lock.holder(), lock.locked(), lock.contenders()) == (None, False, [])
        with lock as held:
            assert Lock("report").holder() == (held.holder, held.fence)
            assert lock.locked()
            assert Lock("report").contenders() == [held.holder]
        assert not lock.locked()

    def test_who_waits_for_one_lock_is_no_matter_to_another(self) -> None:
        with Lock("a"):
            waits = InBackground(Lock("a").acquire)
            eventually(Ticket.objects.waiting().exists)
            with Lock("b"):
                pass
            assert LockRow.objects.get(pk="b").holder == ""
            assert Ticket.objects.waiting().count() == 1
        assert waits.result() is not None


class TestDecorating:
    def test_whatever_returns_a_coroutine_runs_under_it(self) -> None:
        async def work() -> bool:
            return Lock("report").owned()

        class Work:
            async def __call__(self) -> bool:
                return Lock("report").owned()

        def view() -> Coroutine[Any, Any, bool]:  # such as an asynchronous view
            return work()

        for function in (work, Work(), markcoroutinefunction(view)):
            assert asyncio.run(Lock("report")(function)())

    def test_what_would_run_after_the_call_is_refused(self) -> None:
        def pages() -> Iterator[int]:
            yield 1

        async def apages() -> AsyncIterator[int]:
            yield 1

        for lock in (Lock("report"), Semaphore("report"), RWLock("report").read()):
            for function in (pages, apages):
                with pytest.raises(BadOption, match=r"function=.*generator"):
                    lock(function)
        for function in (partial(pages), 5):
            with pytest.raises(BadOption, match="function="):
                Lock("report")(function)  # type: ignore[arg-type]


class TestBadInput:
    @pytest.mark.parametrize("name", ["", "x" * 201, "two\nlines", 5, None, b"x", " x", "x "])
    def test_a_bad_name_is_refused(self, name: Any) -> None:
        with pytest.raises(BadOption, match="name="):
            Lock(name)

    @pytest.mark.parametrize(
        ("option", "value"), [("ttl", 0), ("ttl", float("nan")), ("on_lost", 5), ("ttl", True)]
    )
    def test_a_bad_option_is_refused(self, option: str, value: Any) -> None:
        with pytest.raises(BadOption, match=f"{option}="):
            Lock("report", **{option: value})

    def test_seconds_and_timedeltas_are_allowed(self) -> None:
        with Lock("report", ttl=timedelta(seconds=5), timeout=timedelta(seconds=1)) as held:
            assert held.remaining <= 5

"""Blocking code for asyncio: clean-ups run exactly once, whenever and however often its task is cancelled."""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from asgiref.sync import ThreadSensitiveContext, async_to_sync

from resourcepool.db import sync_async as async_threads
from resourcepool.db.sync_async import in_thread
from tests.eventually import eventually
from tests.resources.busy_thread import occupied, soon

Made = list[str]


async def cancel(task: asyncio.Task[Any], times: int = 1) -> None:
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)


async def cancelled(task: asyncio.Task[Any], times: int = 1) -> None:
    await cancel(task, times)
    with pytest.raises(asyncio.CancelledError):
        await task


async def everything_has_run() -> None:
    await soon(lambda: not async_threads._started)


def begun(call: Coroutine[Any, Any, Any]) -> Any:
    """Begin it, as somebody's task that has just come to its first ``await``."""
    return asyncio.create_task(call)


def test_returns_what_the_call_returns_and_raises_what_it_raises() -> None:
    async def main() -> None:
        assert await in_thread(max, 2, 3) == 3
        with pytest.raises(ZeroDivisionError):
            await in_thread(divmod, 1, 0)

    asyncio.run(main())
    assert not async_threads._started


@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_clean_up_that_has_not_begun_runs_once_though_its_task_is_cancelled(times: int) -> None:
    done: Made = []

    async def main() -> None:
        async with occupied():
            task = begun(in_thread(done.append, "released"))
            await asyncio.sleep(0)
            await cancelled(task, times)
            assert done == [], "the task did not have to wait for that"
        await everything_has_run()

    asyncio.run(main())
    assert done == ["released"]


def test_what_would_only_be_undone_does_not_begin_any_more() -> None:
    done: Made = []

    async def main() -> None:
        async with occupied():
            task = begun(in_thread(done.append, "acquired", undo=lambda _: done.append("given back")))
            await asyncio.sleep(0)
            await cancelled(task, 2)
        await everything_has_run()

    asyncio.run(main())
    assert done == []


@pytest.mark.parametrize("times", [1, 3])
def test_what_is_on_its_way_is_undone_once(times: int) -> None:
    inside, go_on = threading.Event(), threading.Event()
    undone: Made = []

    def acquire() -> str:
        inside.set()
        assert go_on.wait(60)
        return "lease"

    async def main() -> None:
        task = begun(in_thread(acquire, undo=undone.append))
        await soon(inside.is_set)
        await cancelled(task, times)
        go_on.set()
        await everything_has_run()

    asyncio.run(main())
    assert undone == ["lease"]


@pytest.mark.parametrize("times", [1, 3])
def test_what_came_in_that_moment_is_undone_once(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    undone: Made = []
    works: list[Any] = []

    class Seen(async_threads._Work[Any]):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            works.append(self)

    monkeypatch.setattr(async_threads, "_Work", Seen)

    async def main() -> None:
        task = begun(in_thread(str, "lease", undo=undone.append))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        eventually(lambda: works[0]._is_done)  # on purpose without a breath for the event loop
        await cancelled(task, times)
        await everything_has_run()

    asyncio.run(main())
    assert undone == ["lease"]


def test_the_end_of_the_event_loop_waits_for_clean_ups() -> None:
    """``asyncio.run`` cancels every task before it ends: the one that cleans up, and the one that waits for that."""
    inside, go_on, done = threading.Event(), threading.Event(), []

    def release() -> None:
        inside.set()
        assert go_on.wait(60)
        done.append("released")

    async def main() -> None:
        begun(in_thread(release))
        begun(in_thread(done.append, "released, too"))
        await soon(inside.is_set)
        asyncio.get_running_loop().call_later(0.05, go_on.set)  # while everything is being cancelled

    asyncio.run(main())
    assert done == ["released", "released, too"]


@pytest.mark.parametrize("run", [lambda main: asyncio.run(main()), lambda main: async_to_sync(main)()])
def test_what_was_begun_in_the_last_moment_of_the_event_loop_runs(run: Callable[[Any], Any]) -> None:
    done: Made = []

    async def main() -> None:
        begun(in_thread(done.append, "released"))
        await asyncio.sleep(0)

    run(main)
    assert done == ["released"]


def test_a_request_that_ends_waits_for_clean_ups() -> None:
    """Under ASGI each request has a thread of its own, which ends with it."""
    done: Made = []

    async def request(inside: asyncio.Event) -> None:
        async with ThreadSensitiveContext():
            await in_thread(done.append, "acquired")
            try:
                inside.set()
                await asyncio.sleep(60)
            finally:
                await in_thread(done.append, "released")

    async def main() -> None:
        inside = asyncio.Event()
        task = begun(request(inside))
        await inside.wait()
        await cancelled(task, 2)
        await everything_has_run()

    asyncio.run(main())
    assert done == ["acquired", "released"]


def test_a_failure_that_nobody_hears_of_is_noted(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with occupied():
            task = begun(in_thread(divmod, 1, 0))
            await asyncio.sleep(0)
            await cancelled(task)
        await everything_has_run()

    with caplog.at_level(logging.INFO):
        asyncio.run(main())
    assert [(one.name, one.levelname) for one in caplog.records] == [("resourcepool.db.sync_async", "INFO")]
    assert "a call that no task waits for failed" in caplog.text

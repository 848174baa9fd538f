"""An event loop of the main thread wakes periodically while tasks wait, and only then."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Awaitable, Callable

import pytest

from resourcepool.db import threads as async_wakeup
from resourcepool.db.threads import periodic_wakeup
from tests.eventually import InBackground
from tests.resources.busy_thread import soon

Woken = list[asyncio.AbstractEventLoop]


@pytest.fixture(autouse=True)
def woken(monkeypatch: pytest.MonkeyPatch) -> Woken:
    """Return the loops that have been woken so far."""
    them: Woken = []
    wake = async_wakeup._wake

    def noted(loop: asyncio.AbstractEventLoop) -> None:
        them.append(loop)
        wake(loop)

    monkeypatch.setattr(
        async_wakeup, "_waiting", weakref.WeakKeyDictionary()
    )  # without ended loops of other tests
    monkeypatch.setattr(async_wakeup, "POLL", 0.001)
    monkeypatch.setattr(async_wakeup, "_wake", noted)
    return them


async def waits_for(event: asyncio.Event) -> None:
    with periodic_wakeup():
        await event.wait()


async def none_is_left() -> None:
    await soon(lambda: not async_wakeup._waiting)


def timers() -> int:
    return len(asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined]


def test_a_loop_wakes_again_and_again_until_the_last_task_has_waited(woken: Woken) -> None:
    async def main() -> None:
        ends = [asyncio.Event() for _ in range(3)]
        tasks = [asyncio.create_task(waits_for(end)) for end in ends]
        await asyncio.sleep(0)
        assert timers() == 1, "one for all of them"
        for end, task in zip(ends, tasks, strict=True):
            woken.clear()
            await soon(lambda: len(woken) > 2)
            end.set()
            await task
        await none_is_left()
        woken.clear()
        await asyncio.sleep(0.02)
        assert not woken

    asyncio.run(main())


def ended(task: "asyncio.Task[None]", event: asyncio.Event) -> None:
    event.set()


def cancelled(task: "asyncio.Task[None]", event: asyncio.Event) -> None:
    task.cancel()


@pytest.mark.parametrize("end", [ended, cancelled])
def test_who_waits_again_is_woken_again(
    woken: Woken, end: Callable[["asyncio.Task[None]", asyncio.Event], None]
) -> None:
    async def main() -> None:
        for pause in (none_is_left, lambda: asyncio.sleep(0)):
            await waited(pause)
        await none_is_left()

    async def waited(pause: Callable[[], Awaitable[None]]) -> None:
        woken.clear()
        event = asyncio.Event()
        task = asyncio.create_task(waits_for(event))
        await soon(lambda: len(woken) > 2)
        end(task, event)
        await asyncio.wait([task])
        await pause()

    asyncio.run(main())


def test_a_loop_that_ends_meanwhile_is_not_kept(woken: Woken) -> None:
    async def main() -> "weakref.ref[asyncio.AbstractEventLoop]":
        task = asyncio.create_task(waits_for(asyncio.Event()))
        await asyncio.sleep(0)
        assert not task.done()
        return weakref.ref(asyncio.get_running_loop())

    loop = asyncio.run(main())
    woken.clear()
    gc.collect()
    assert loop() is None
    assert not async_wakeup._waiting


def test_other_threads_handle_no_signals_and_their_loops_sleep_on(woken: Woken) -> None:
    async def main() -> None:
        assert threading.current_thread() is not threading.main_thread()
        event = asyncio.Event()
        task = asyncio.create_task(waits_for(event))
        await asyncio.sleep(0.02)
        assert not timers()
        event.set()
        await task

    InBackground(lambda: asyncio.run(main())).result()
    assert not woken

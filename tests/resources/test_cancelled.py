"""A task is cancelled while other blocking code delays its clean-up: leases without a handle are not renewed."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from resourcepool.db import sync_async as async_threads
from resourcepool.leases.keeper import keeper
from resourcepool.models import Proxy
from resourcepool.resources.lease import ResourceLease
from resourcepool.waiting import acquire
from resourcepool.waiting.poll import poller_on
from tests.app.rows import columns, hold, new, several
from tests.committed import Clock
from tests.db.test_async_threads import cancel, cancelled, everything_has_run
from tests.eventually import closing, eventually
from tests.resources.busy_thread import occupied, soon
from tests.waiting.threads import let_pass

Test = Callable[[], Any]


def run(main: Test) -> None:
    async def to_its_end() -> None:
        await main()
        await everything_has_run()
        await sync_to_async(connections.close_all)()

    asyncio.run(to_its_end())


def kept(*others: Any) -> list[Any]:
    return [lease for lease in keeper.leases() if lease.model is Proxy and lease not in others]


def waiters() -> list[Any]:
    return list(poller_on("default").turns.waiters)


async def release_elsewhere(lease: Any) -> None:
    await asyncio.get_running_loop().run_in_executor(None, closing, lease.release)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_the_end_of_a_block_releases(times: int) -> None:
    row = new(Proxy)

    async def main() -> None:
        go_on = asyncio.Event()

        async def work() -> None:
            async with await Proxy.pool.aacquire():
                await go_on.wait()

        task = asyncio.create_task(work())
        await soon(kept)
        await everything_has_run()
        async with occupied():
            go_on.set()
            await soon(lambda: async_threads._started)
            await cancelled(task, times)

    run(main)
    assert kept() == []
    assert (columns(row)["fence"], columns(row)["holder"]) == (2, "")


@pytest.mark.parametrize("times", [1, 2, 3])
def test_what_was_granted_and_is_only_to_be_read_yet_is_given_back(
    times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, read, go_on = new(Proxy), ResourceLease._load, threading.Event()
    monkeypatch.setattr(ResourceLease, "_load", lambda lease: go_on.wait(60) and read(lease))
    first = hold(row)

    async def main() -> None:
        task = asyncio.create_task(Proxy.pool.aacquire(timeout=20))
        await soon(waiters)
        await release_elsewhere(first)
        await soon(lambda: kept(first))
        await cancel(task, times)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main)
    eventually(lambda: columns(row)["fence"] == 3)
    assert columns(row)["holder"] == ""
    assert kept() == []


@pytest.mark.parametrize(("times", "is_late"), [(1, False), (2, False), (3, False), (1, True)])
def test_a_waiter_leaves_the_line(times: int, is_late: bool, process_clock: Clock) -> None:
    first = hold(new(Proxy))

    async def main() -> None:
        task = asyncio.create_task(Proxy.pool.aacquire(timeout=20))
        await soon(waiters)
        async with occupied():
            if is_late:  # its time is up just then
                process_clock.advance(20)
                let_pass(20)
                await soon(lambda: async_threads._started)  # it is to be said why it was too late
            await cancelled(task, times)
            await soon(lambda: not waiters())

    run(main)
    first.release()
    eventually(lambda: not waiters())
    assert kept() == []


def test_a_first_look_that_has_not_begun_takes_nothing() -> None:
    row = new(Proxy)

    async def main() -> None:
        async with occupied():
            task = asyncio.create_task(Proxy.pool.aacquire())
            await soon(lambda: async_threads._started)
            await cancelled(task)

    run(main)
    assert columns(row)["fence"] == 0


def test_a_handle_that_moves_to_another_resource_can_be_released() -> None:
    several(Proxy, 2)

    async def main() -> None:
        lease: Any = await Proxy.pool.aacquire()
        task: Any = asyncio.current_task()
        try:
            asyncio.get_running_loop().call_soon(task.cancel)
            await lease.afix("banned")
        finally:
            await lease.arelease() if lease.is_held else None

    with pytest.raises(asyncio.CancelledError):
        run(main)
    assert kept() == []


def test_a_cancellation_is_not_replaced_by_an_error_of_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    first = hold(new(Proxy))
    leave = acquire.leave

    def fails_just_then(waiter: Any) -> Any:
        waiter.outcome.fail(LookupError("the line is broken"))
        return leave(waiter)

    async def main() -> None:
        task = asyncio.create_task(Proxy.pool.aacquire(timeout=20))
        await soon(waiters)
        monkeypatch.setattr(acquire, "leave", fails_just_then)
        await cancelled(task)

    run(main)
    first.release()

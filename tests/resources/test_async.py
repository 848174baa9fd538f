"""The asyncio methods: the same pool, and a cancelled task leaves nothing behind."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from resourcepool.exceptions import AcquireTimeout, LeaseLost, LeaseReleased
from resourcepool.leases.keeper import keeper
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting import acquire
from resourcepool.waiting.poll import poller_on
from tests.app.rows import busy_for, columns, hold, new, several, steal
from tests.committed import Clock
from tests.eventually import eventually
from tests.waiting.threads import all_have_tickets, let_pass

Run = Callable[[Coroutine[Any, Any, Any]], Any]

# The rows themselves are looked at where Django's blocking code runs.
look = sync_to_async(lambda work, *args: work(*args))


async def aeventually(predicate: Callable[[], Any]) -> None:
    async with asyncio.timeout(5):
        while not await look(predicate):
            await asyncio.sleep(0.005)


@pytest.fixture
def run() -> Iterator[Run]:
    """Run a coroutine, and close the connections of the thread for its blocking code."""

    async def and_close(work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await work
        finally:
            await sync_to_async(connections.close_all)()

    return lambda work: asyncio.run(and_close(work))


def test_aacquire_and_the_handles_twins(run: Run) -> None:
    proxy = new(Proxy)

    async def use() -> None:
        lease = await Proxy.pool.aacquire(timeout=1)
        lease.ensure_held()
        await lease.arenew()
        await lease.arelease()
        with pytest.raises(LeaseReleased):
            await lease.arelease()

    run(use())
    assert columns(proxy)["fence"] == 2


def test_aacquire_gives_up_after_its_timeout(run: Run, process_clock: Clock) -> None:
    hold(new(Proxy))

    async def wait() -> None:
        waiter = asyncio.create_task(Proxy.pool.aacquire(timeout=20))
        await aeventually(all_have_tickets)
        process_clock.advance(20)
        let_pass(20)
        with pytest.raises(AcquireTimeout, match="within 20 s: 1 match, 1 leased"):
            await waiter

    run(wait())
    eventually(lambda: not Ticket.objects.exists())


def test_aacquire_many_is_all_or_nothing(run: Run) -> None:
    several(Proxy, 3)
    leases = run(Proxy.pool.aacquire_many(3, timeout=1))
    assert len({lease.pk for lease in leases}) == 3
    assert run(Proxy.pool.aacquire_many(1, wait=False)) is None


def test_alease_holds_for_a_block(run: Run) -> None:
    proxy = new(Proxy)

    async def use() -> int:
        async with Proxy.pool.alease(timeout=1) as lease:
            assert lease.is_held
            return lease.fence

    assert run(use()) == 1
    assert busy_for(proxy) <= 0


def test_alease_says_at_its_end_that_it_was_lost(run: Run) -> None:
    proxy = new(Proxy)

    async def use() -> None:
        async with Proxy.pool.alease(timeout=1):
            await look(steal, proxy)

    with pytest.raises(LeaseLost):
        run(use())


def test_aquarantine_and_afix(run: Run) -> None:
    rows = several(Proxy, 3)

    async def use() -> None:
        async with Proxy.pool.alease(timeout=1) as lease:
            bad = lease.pk
            await lease.afix("banned")
            assert lease.pk != bad
            lease.ensure_held()
            await lease.aquarantine("banned, too")

    run(use())
    assert sorted(columns(row)["strikes"] for row in rows) == [0, 1, 1]


def test_many_tasks_wait_without_a_thread_each(run: Run) -> None:
    row = new(Proxy)
    counter = {"value": 0, "inside": 0}

    async def use() -> None:
        async with Proxy.pool.alease(timeout=20):
            counter["inside"] += 1
            assert counter["inside"] == 1
            value = counter["value"]
            await asyncio.sleep(0.001)
            counter["value"] = value + 1
            counter["inside"] -= 1

    async def everybody() -> int:
        tasks = [asyncio.create_task(use()) for _ in range(30)]
        await aeventually(lambda: Ticket.objects.count() > 10)
        threads = threading.active_count()
        await asyncio.gather(*tasks)
        return threads

    before = threading.active_count()
    assert run(everybody()) <= before + 5
    assert counter["value"] == 30
    assert columns(row)["fence"] <= 60, "a hand-over counts once, a release and a claim twice"


class TestCancellation:
    def test_while_waiting_leaves_the_line(self, run: Run) -> None:
        proxy = new(Proxy)
        held = hold(proxy)

        async def give_up() -> None:
            task = asyncio.create_task(Proxy.pool.aacquire(timeout=20))
            await aeventually(Ticket.objects.exists)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        run(give_up())
        eventually(lambda: not Ticket.objects.exists())
        held.release()
        assert Proxy.pool.acquire(wait=False) is not None

    def test_gives_back_what_came_in_that_moment(self, run: Run) -> None:
        """The waiter was served, and its task is cancelled before it notices."""
        proxy = new(Proxy)
        held = hold(proxy)
        waiters: list[Any] = []

        async def give_up() -> None:
            task = asyncio.create_task(Proxy.pool.aacquire(timeout=20))
            await aeventually(lambda: poller_on("default").turns.waiters)
            waiters.extend(poller_on("default").turns.waiters)
            served = asyncio.get_running_loop().run_in_executor(None, held.release)
            while not waiters[0].outcome.is_done:  # on purpose without a breath for the event loop
                pass
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await served
            await asyncio.get_running_loop().run_in_executor(None, connections.close_all)

        run(give_up())
        assert waiters[0].outcome.result()[0].pk == proxy.pk
        eventually(lambda: busy_for(proxy) <= 0)
        assert columns(proxy)["holder"] == ""
        assert not [lease for lease in keeper.leases() if lease.model is Proxy and lease is not held]

    @pytest.mark.parametrize("wait", [True, False])
    def test_during_the_first_look_gives_back_what_it_found(
        self, run: Run, wait: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        proxy = new(Proxy)
        inside, go_on, claim = threading.Event(), threading.Event(), acquire.claim

        def slow(*args: Any, **options: Any) -> Any:
            inside.set()
            go_on.wait(10)
            return claim(*args, **options)

        monkeypatch.setattr(acquire, "claim", slow)

        async def give_up() -> None:
            task = asyncio.create_task(Proxy.pool.aacquire(wait=wait, timeout=20))
            while not inside.is_set():
                await asyncio.sleep(0.005)
            task.cancel()
            await asyncio.sleep(0)
            go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await task

        run(give_up())
        assert (columns(proxy)["fence"], columns(proxy)["holder"]) == (2, "")
        assert not [lease for lease in keeper.leases() if lease.model is Proxy]

    def test_inside_the_block_releases(self, run: Run) -> None:
        proxy = new(Proxy)

        async def work(inside: asyncio.Event) -> None:
            async with Proxy.pool.alease(timeout=1):
                inside.set()
                await asyncio.sleep(600)

        async def give_up() -> None:
            inside = asyncio.Event()
            task = asyncio.create_task(work(inside))
            await inside.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        run(give_up())
        assert (columns(proxy)["fence"], columns(proxy)["holder"]) == (2, "")

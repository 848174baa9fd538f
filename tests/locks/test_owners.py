"""Whom a lock belongs to: one thread or task, whatever its class calls equal, for as long as it can still release."""

import _thread
import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connections

from resourcepool.db.sync_async import in_thread
from resourcepool.elections import Election
from resourcepool.leases.keeper import keeper
from resourcepool.locks import Channel, Condition, Lock, RWLock, Semaphore
from resourcepool.locks.channels.poller import pollers
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import Ticket
from resourcepool.waiting.poll import poller_on
from tests.eventually import InBackground, closing, eventually

LOCKS: dict[str, Callable[[], Any]] = {
    "lock": lambda: Lock("report"),
    "reader": lambda: RWLock("report", readers=2).read(),
    "writer": lambda: RWLock("report", readers=2).write(),
    "lock with on_lost": lambda: Lock("report", on_lost=TOLD.append),
}
WAITS: dict[str, Callable[[], Any]] = {
    **{name: lambda name=name: LOCKS[name]().aacquire() for name in ("lock", "reader", "writer")},
    "semaphore": lambda: Semaphore("report").aacquire(),
    "election": lambda: Election("report").acampaign(),
}
BLOCKS: dict[str, Callable[[], Any]] = {
    **LOCKS,
    "reader": lambda: RWLock("report", readers=2).write(),
    "semaphore": lambda: Semaphore("report"),
    "election": lambda: Election("report").campaign(),
}
TOLD: list[Any] = []
KEPT: list[asyncio.Task[Any]] = []  # as they are by those who gather them

one_of_each = pytest.mark.parametrize("make", LOCKS.values(), ids=LOCKS)
each_that_waits = pytest.mark.parametrize("name", WAITS)


def renewed() -> list[Any]:
    """Return what is renewed after a look for leases that nobody can release."""
    keeper._report_leaks("default")
    return keeper.leases()


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that ends with a task of it still waiting."""
    made = asyncio.new_event_loop()
    yield made
    made.close()


def begun(loop: asyncio.AbstractEventLoop, work: Any, until: Callable[[], Any]) -> None:
    """Begin ``work`` in a task of this loop, which stops when ``until()`` is true. The task is kept for good."""

    async def watch() -> None:
        while not await asyncio.to_thread(closing, until):
            await asyncio.sleep(0.01)

    task = loop.create_task(work)
    KEPT.append(task)
    loop.run_until_complete(watch())
    loop.run_until_complete(in_thread(connections.close_all))
    assert not task.done()


def is_in_line() -> bool:
    return bool(poller_on("default").turns.waiters) and Ticket.objects.waiting().exists()


class Same(threading.Thread):
    """A thread that says it is every other one of its class."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same)

    def __hash__(self) -> int:
        return 1


class SameTask(asyncio.Task[Any]):
    """A task that says it is every other one of its class."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameTask)

    def __hash__(self) -> int:
        return 1


@one_of_each
def test_a_thread_that_ended_gives_up_what_it_holds_and_who_keeps_its_object_and_the_hold_is_told(
    make: Callable[[], Any],
) -> None:
    TOLD.clear()
    ended = InBackground(lambda: make().acquire())
    hold = ended.result()
    assert eventually(lambda: not renewed())
    assert (hold.is_held, hold.lost.is_set()) == (False, True)
    assert [hold] * (hold._on_lost is not None) == TOLD


@one_of_each
def test_a_task_that_ended_gives_up_what_it_holds_though_its_object_and_the_hold_are_kept(
    make: Callable[[], Any],
) -> None:
    async def work() -> None:
        task = asyncio.create_task(make().aacquire())
        hold = await task
        assert not await asyncio.to_thread(renewed)
        assert task.result() is hold

    asyncio.run(work())


def test_permits_of_a_semaphore_outlive_the_thread_that_acquired_them() -> None:
    hold = InBackground(lambda: Semaphore("seats").acquire()).result()
    assert renewed()
    hold.release()


@pytest.mark.parametrize("in_tasks", [False, True], ids=["threads", "tasks"])
def test_two_that_call_themselves_equal_have_a_lock_one_after_the_other(in_tasks: bool) -> None:
    got: list[bool] = []

    def in_thread() -> None:
        got.append(closing(lambda: Lock("report").acquire(blocking=False)) is not None)

    async def both() -> None:
        loop = asyncio.get_running_loop()
        first = SameTask(Lock("report").aacquire(blocking=False), loop=loop)
        await first
        second = SameTask(Lock("report").aacquire(blocking=False), loop=loop)
        got.extend([first.result() is not None, await second is not None])

    if in_tasks:
        asyncio.run(both())
    else:
        for one in [Same(target=in_thread), Same(target=in_thread)]:
            one.start()
            one.join()
    assert got == [True, False]


def test_a_foreign_thread_does_not_inherit_what_an_earlier_one_of_its_number_held() -> None:
    """Python has one object for all threads that were not begun by ``threading`` and have the same number."""
    got: list[tuple[int, Any, bool]] = []

    def work() -> None:
        lock = Lock("report")
        acquired = closing(lambda: lock.acquire(blocking=False))
        got.append((threading.get_ident(), acquired, lock.owned()))

    for count in (1, 2):
        _thread.start_new_thread(work, ())
        eventually(lambda count=count: len(got) == count)
    (_, first, _), (_, second, owns) = got
    assert first is not None
    assert (second, owns) == (None, False)


@each_that_waits
def test_a_task_that_waits_in_a_loop_that_is_closed_leaves_the_line(
    name: str, loop: asyncio.AbstractEventLoop
) -> None:
    with BLOCKS[name]():
        begun(loop, WAITS[name](), is_in_line)
        loop.close()
        eventually(lambda: not Ticket.objects.waiting().exists())
    assert not renewed()


@each_that_waits
def test_what_a_task_was_given_and_never_got_because_its_loop_is_closed_is_not_renewed(
    name: str, loop: asyncio.AbstractEventLoop
) -> None:
    with BLOCKS[name]():
        begun(loop, WAITS[name](), is_in_line)
    eventually(lambda: not Ticket.objects.waiting().exists())
    eventually(keeper.leases)
    loop.close()
    assert not renewed()


def test_what_a_task_of_a_closed_loop_holds_is_not_renewed(loop: asyncio.AbstractEventLoop) -> None:
    async def work() -> None:
        async with Lock("report"):
            await asyncio.get_running_loop().create_future()

    begun(loop, work(), LockRow.objects.held().exists)
    assert renewed()
    loop.close()
    assert not renewed()


def test_a_task_that_waits_for_a_condition_in_a_closed_loop_passes_a_notification_on(
    loop: asyncio.AbstractEventLoop,
) -> None:
    async def work() -> None:
        condition = Condition(Lock("report"))
        async with condition:
            await condition.await_()

    begun(loop, work(), is_in_line)
    loop.close()
    condition = Condition(Lock("report"))
    with condition:
        eventually(lambda: not Ticket.objects.waiting().exists())
        assert condition.notify() == 0


def test_a_task_that_waits_for_a_message_in_a_closed_loop_keeps_no_subscription(
    loop: asyncio.AbstractEventLoop,
) -> None:
    async def work() -> None:
        async with await Channel("news").asubscribe("reader") as messages:
            await messages.aget()

    begun(loop, work(), lambda: bool(pollers.on("default")._waiting))
    assert renewed()
    loop.close()
    assert not renewed()
    assert eventually(lambda: not pollers.on("default")._waiting)


def test_a_subscription_may_be_read_on_in_another_loop() -> None:
    messages = asyncio.run(Channel("news").asubscribe("reader"))
    assert asyncio.run(messages.aget(timeout=0)) is None
    assert messages.get(timeout=0) is None
    assert renewed()
    messages.close()

"""A task that is cancelled, at whatever place it waits, holds nothing afterwards, and takes no signal with it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from resourcepool.db.sync_async import in_thread
from resourcepool.leases.keeper import keeper
from resourcepool.locks import Condition, Lock, RWLock, Semaphore
from resourcepool.models import ConditionWaiter, Ticket
from tests.cancellations import cancelled_at
from tests.eventually import eventually


def at_each_place(scenario: Callable[[int], Coroutine[Any, Any, str | None]]) -> list[str]:
    """Run it cancelled at its first, second, .. place, up to the run that comes through; return the places."""
    places: list[str] = []
    while (place := asyncio.run(scenario(len(places)))) is not None:
        places.append(place)
        eventually(lambda: not keeper.unreleased(), because=lambda: places)
    return places


async def in_line(task: asyncio.Task[Any], line: Any = None, after: int = 0) -> int:
    """Return the ticket that ``task`` has taken in this line since that one; the same if it is done, and left."""
    tickets = (Ticket.objects.waiting() if line is None else line).filter(pk__gt=after).order_by("pk")
    while True:
        is_done = task.done()
        found: int | None = await in_thread(tickets.values_list("pk", flat=True).first)
        if is_done == (found is None):
            return found or after
        await asyncio.sleep(0.002)


SIDES: dict[str, Callable[[], Any]] = {
    "lock": lambda: Lock("report"),
    "permits": lambda: Semaphore("report", 1),
    "writer": lambda: RWLock("report", readers=2).write(),
}


@pytest.mark.parametrize("side", SIDES.values(), ids=SIDES)
def test_who_waits_holds_nothing(side: Callable[[], Any]) -> None:
    async def take() -> None:
        async with side():
            pass

    async def scenario(number: int) -> str | None:
        async with side():
            taking = asyncio.create_task(cancelled_at(number, take()))
            await in_line(taking)
        return await taking

    assert len(at_each_place(scenario)) > 2


def test_who_upgrades_holds_nothing() -> None:
    def lock() -> RWLock:
        return RWLock("report", readers=2)

    async def upgrade() -> None:
        async with lock().read():
            await lock().aupgrade()
            await lock().adowngrade()

    async def scenario(number: int) -> str | None:
        async with lock().read():
            upgrading = asyncio.create_task(cancelled_at(number, upgrade()))
            await in_line(upgrading)
        return await upgrading

    assert len(at_each_place(scenario)) > 5


def test_a_notification_that_a_cancelled_task_has_got_wakes_another_one() -> None:
    condition = Condition(Lock("report"))

    async def scenario(number: int) -> str | None:
        woken: list[bool] = []

        async def wait() -> None:
            async with condition:
                woken.append(await condition.await_(20))

        waiting = asyncio.create_task(cancelled_at(number, wait()))
        line = Ticket.objects.in_line_for(ConditionWaiter, "report")
        first = await in_line(waiting, line)
        another = asyncio.create_task(wait())
        await in_line(another, line, first)
        async with condition:
            assert await condition.anotify() == 1
        place = await waiting
        if not woken:
            await another
        another.cancel()
        await asyncio.wait([another])
        assert woken == [True], place
        return place

    assert len(at_each_place(scenario)) > 5


def test_a_notification_of_a_cancelled_task_is_not_kept_for_one_who_waits_later() -> None:
    condition = Condition(Lock("report"))

    async def wait() -> None:
        async with condition:
            await condition.await_(20)

    async def scenario() -> None:
        waiting = asyncio.create_task(wait())
        await in_line(waiting, Ticket.objects.in_line_for(ConditionWaiter, "report"))
        async with condition:
            assert await condition.anotify() == 1
            waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(scenario())
    assert eventually(lambda: not ConditionWaiter.objects.exists(), 5)

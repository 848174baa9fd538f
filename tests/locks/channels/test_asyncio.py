"""The same for asyncio, where waiting occupies no thread, and a cancelled call loses no message."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable, MessagesMissed
from resourcepool.locks import Channel
from resourcepool.locks.channels.models import Message as MessageRow
from resourcepool.locks.channels.position import Position
from resourcepool.models import Ticket
from tests.eventually import eventually
from tests.locks.channels.reading import LONG, filled


async def all_of(reader: Any) -> list[Any]:
    found = []
    while (message := await reader.aget(timeout=0)) is not None:
        found.append(message.payload)
    return found


def test_many_that_wait_occupy_no_thread() -> None:
    async def main() -> None:
        before = threading.active_count()
        readers = [await Channel("c").asubscribe() for _ in range(50)]
        waiting = [asyncio.create_task(reader.aget(timeout=LONG)) for reader in readers]
        await asyncio.sleep(0)
        assert threading.active_count() < before + 15
        await Channel("c").apublish(7)
        assert [message.payload for message in await asyncio.gather(*waiting)] == [7] * 50
        for reader in readers:
            await reader.aclose()

    asyncio.run(main())


def test_a_cancelled_call_keeps_what_was_missed_to_be_told() -> None:
    async def main() -> None:
        reader = await Channel("c").asubscribe(from_="start")
        await sync_to_async(MessageRow.objects.filter(number=1).delete)()
        reading = asyncio.create_task(reader.aget())
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        with pytest.raises(MessagesMissed):
            await reader.aget(timeout=0)
        assert await all_of(reader) == [2, 3]
        await reader.aclose()

    filled(3)
    asyncio.run(main())


def after(calls: int) -> Callable[[], bool]:
    """Return a ``stop`` that says so after having been asked so many times."""
    answers = iter([False] * calls)
    return lambda: next(answers, True)


@pytest.fixture
def _short_naps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resourcepool.locks.channels.subscriber.POLL", 0.001)
    monkeypatch.setattr("resourcepool.waiting.acquire.POLL", 0.001)


@pytest.mark.usefixtures("_short_naps")
def test_stop_ends_the_iteration_the_wait_for_the_name_and_the_wait_for_the_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> bool:
        raise DatabaseUnavailable("away")

    async def main() -> None:
        async with await Channel("c").asubscribe("a", from_="start", stop=after(4)) as reader:
            assert [message.payload async for message in reader] == [1]
            with pytest.raises(AcquireTimeout):
                await Channel("c").asubscribe("a", stop=after(2))
        async with await Channel("c").asubscribe(stop=after(4)) as reader:
            monkeypatch.setattr(Position, "fill", fail)
            assert await reader.aget() is None

    filled(1)
    asyncio.run(main())


def test_what_stop_raises_ends_the_wait_for_the_name_and_nothing_stays_behind() -> None:
    def fail() -> bool:
        raise ZeroDivisionError

    async def main() -> None:
        async with await Channel("c").asubscribe("a"):
            with pytest.raises(ZeroDivisionError):
                await Channel("c").asubscribe("a", stop=fail)

    asyncio.run(main())
    assert eventually(lambda: not Ticket.objects.exists())

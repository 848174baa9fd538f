"""A reader that is cancelled, at whatever place it waits, loses no message, and blocks no name."""

import asyncio
from typing import Any

import pytest

from resourcepool.locks import Channel
from resourcepool.locks.channels.poller import pollers
from tests.cancellations import cancelled_at
from tests.locks.channels.reading import LONG
from tests.locks.test_cancelled_anywhere import at_each_place, in_line


async def until_it_waits(task: "asyncio.Task[Any]") -> None:
    while not (task.done() or pollers.on("default")._waiting):
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("name", [None, "a"])
def test_who_reads_loses_nothing(name: str | None) -> None:
    runs = iter(range(1000))

    async def scenario(number: int) -> str | None:
        channel = Channel(f"c{next(runs)}")
        got: list[Any] = []
        async with await channel.asubscribe(name, timeout=LONG) as reader:

            async def read() -> None:
                for _ in range(3):
                    message: Any = await reader.aget()
                    got.append(message.payload)
                    await message.adone()

            reading = asyncio.create_task(cancelled_at(number, read()))
            for payload in (1, 2, 3):
                await until_it_waits(reading)
                await channel.apublish(payload)
            place = await asyncio.wait_for(reading, 20)
            while len(got) < 3:
                message = await reader.aget(timeout=5)
                assert message is not None, (place, got)
                got.append(message.payload)
            assert got == [1, 2, 3], place
        return place

    assert any(place.endswith(" in wait_async") for place in at_each_place(scenario))


@pytest.mark.parametrize("is_taken", [False, True])
def test_who_begins_blocks_no_name(is_taken: bool) -> None:
    runs = iter(range(1000))

    async def scenario(number: int) -> str | None:
        channel = Channel(f"c{next(runs)}")

        async def read() -> None:
            async with await channel.asubscribe("a"):
                pass

        other = await channel.asubscribe("a") if is_taken else None
        reading = asyncio.create_task(cancelled_at(number, read()))
        if other is not None:
            await in_line(reading)
            await other.aclose()
        place = await asyncio.wait_for(reading, 20)
        async with await channel.asubscribe("a", timeout=5):
            pass
        return place

    assert any("in_thread" in place for place in at_each_place(scenario))

"""A reader that is cancelled, at whatever place it waits, loses no message, and blocks no name."""

import asyncio
from typing import Any

import pytest

from resourcepool.async_threads import in_thread
from resourcepool.leases.keeper import keeper
from resourcepool.locks import Channel
from resourcepool.models import Subscription, Ticket
from tests.cancellations import cancelled_at
from tests.eventually import eventually
from tests.locks.channels.reading import LONG, filled
from tests.locks.test_cancelled_anywhere import at_each_place, in_line


@pytest.mark.parametrize("name", [None, "a"])
def test_who_reads_loses_nothing(name: str | None) -> None:
    """Whatever place: the messages come all, in order, once the next one asks again."""
    runs = iter(range(1000))

    async def scenario(number: int) -> str | None:
        channel = Channel(f"c{next(runs)}")
        got: list[Any] = []
        async with await channel.asubscribe(name, timeout=LONG) as reader:

            async def read() -> None:
                for _ in range(3):
                    message = await reader.aget()
                    assert message is not None
                    got.append(message.payload)
                    await message.adone()

            reading = asyncio.create_task(cancelled_at(number, read()))
            await asyncio.sleep(0.02)
            for payload in (1, 2):
                await channel.apublish(payload)
                await asyncio.sleep(0.03)
            await channel.apublish(3)
            place = await asyncio.wait_for(reading, 20)
            while len(got) < 3:
                message = await reader.aget(timeout=5)
                assert message is not None, (place, got)
                got.append(message.payload)
            assert got == [1, 2, 3], place
        return place

    places = at_each_place(scenario)
    print(len(places), *sorted(set(places)), sep="\n")


@pytest.mark.parametrize("waits", [False, True])
def test_who_begins_blocks_no_name(waits: bool) -> None:
    runs = iter(range(1000))

    async def scenario(number: int) -> str | None:
        channel = Channel(f"c{next(runs)}")

        async def read() -> None:
            async with await channel.asubscribe("a"):
                pass

        other = await channel.asubscribe("a") if waits else None
        reading = asyncio.create_task(cancelled_at(number, read()))
        if other is not None:
            await in_line(reading)
            await other.aclose()
        place = await asyncio.wait_for(reading, 20)
        async with await channel.asubscribe("a", timeout=5):
            pass
        return place

    places = at_each_place(scenario)
    print(len(places), *sorted(set(places)), sep="\n")

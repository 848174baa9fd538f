"""After a term that was not resigned the next leader waits for the lock delay."""

import asyncio
import threading
import time

import pytest
from asgiref.sync import sync_to_async

from resourcepool.elections import Election, Term
from resourcepool.elections.models import Election as ElectionRow
from resourcepool.exceptions import AcquireTimeout
from tests.app.rows import expire
from tests.eventually import InBackground, eventually


def row() -> ElectionRow:
    return ElectionRow.objects.get()


def test_after_a_term_that_was_not_resigned_the_next_leader_waits_for_the_lock_delay() -> None:
    waited: list[float] = []

    def lead() -> Term:
        began = time.monotonic()
        term = Election("reports", lock_delay=0.5).campaign()
        waited.append(time.monotonic() - began)
        return term

    lead().resign()
    lead()
    expire(row())  # a crash
    lead()
    assert waited[2] >= 0.5
    assert ElectionRow.objects.get().resigned_term < ElectionRow.objects.get().elected_term


def _dead_leader() -> None:
    Election("reports", lock_delay=3_600).campaign()
    expire(row())


def test_whoever_is_stopped_in_the_lock_delay_stops_at_once_and_leaves_it_to_the_next_one() -> None:
    _dead_leader()
    is_to_stop = threading.Event()
    election = Election("reports", lock_delay=3_600)
    waiting = InBackground(lambda: election.campaign(stop=is_to_stop.is_set))
    eventually(lambda: row().elected_term == row().fence, 30)
    is_to_stop.set()
    with pytest.raises(AcquireTimeout):
        waiting.result(30)
    assert Election("reports").leader() is None, "it is given up"
    _waits_for_the_lock_delay()


def _waits_for_the_lock_delay() -> None:
    is_to_stop = threading.Event()
    election, before = Election("reports", lock_delay=3_600), row().elected_term
    waiting = InBackground(lambda: election.campaign(stop=is_to_stop.is_set))
    eventually(lambda: row().elected_term > before, 30)
    waiting.join(0.1)
    assert waiting.is_alive(), "the one that died may still be at work"
    is_to_stop.set()
    with pytest.raises(AcquireTimeout):
        waiting.result(30)


async def _cancelled_in_the_lock_delay() -> None:
    campaign = asyncio.create_task(Election("reports", lock_delay=3_600).acampaign())
    before = await sync_to_async(row)()
    while (await sync_to_async(row)()).elected_term == before.elected_term:
        await asyncio.sleep(0.01)
    campaign.cancel()
    with pytest.raises(asyncio.CancelledError):
        await campaign


def test_so_does_one_under_asyncio_that_is_cancelled() -> None:
    _dead_leader()
    asyncio.run(_cancelled_in_the_lock_delay())
    assert Election("reports").leader() is None
    _waits_for_the_lock_delay()


async def _stopped(lock_delay: float) -> None:
    answers = iter([False])
    with pytest.raises(AcquireTimeout, match="was not won"):
        await Election("reports", lock_delay=lock_delay).acampaign(stop=lambda: next(answers, True))


def test_stop_ends_the_wait_and_the_lock_delay_under_asyncio_too() -> None:
    _dead_leader()
    asyncio.run(_stopped(3_600))
    assert Election("reports").leader() is None
    with Election("reports").campaign() as term:
        asyncio.run(_stopped(0))
        assert term.is_leader

"""Whether the next caller is likely to wait: a short memory that only decides what is tried first."""

from resourcepool.models import Proxy
from resourcepool.waiting.estimates import REMEMBERED_FOR, RecentWaits
from tests.app.models import Device
from tests.committed import Clock


def test_waiting_is_unlikely_at_first() -> None:
    assert not RecentWaits().is_likely(Proxy, "default")


def test_a_wait_is_remembered_briefly(process_clock: Clock) -> None:
    memory = RecentWaits()
    memory.note(Proxy, "default", had_to_wait=True)
    assert memory.is_likely(Proxy, "default")
    process_clock.advance(REMEMBERED_FOR + 0.1)
    assert not memory.is_likely(Proxy, "default")


def test_a_caller_that_did_not_wait_ends_it() -> None:
    memory = RecentWaits()
    memory.note(Proxy, "default", had_to_wait=True)
    memory.note(Proxy, "default", had_to_wait=False)
    assert not memory.is_likely(Proxy, "default")


def test_each_pool_on_each_database_is_remembered_by_itself() -> None:
    memory = RecentWaits()
    memory.note(Proxy, "default", had_to_wait=True)
    memory.note(Device, "default", had_to_wait=False)
    assert memory.is_likely(Proxy, "default")
    assert not memory.is_likely(Device, "default")
    assert not memory.is_likely(Proxy, "another")

"""The state of each resource."""

from collections.abc import Iterator

import pytest

from resourcepool.db.dialect import DbLater
from resourcepool.models import Event, Proxy
from resourcepool.resources.state import State
from resourcepool.signals import EventKind
from resourcepool.status.resources.activity import RecentEvents, cells_of, recent_events
from tests.app.models import Device
from tests.app.rows import change, hold, new, several


@pytest.fixture(autouse=True)
def _no_events() -> Iterator[None]:
    yield
    Event.objects.all().delete()


def test_a_cell_for_each_resource_in_the_order_of_their_keys() -> None:
    proxies, device = several(Proxy, 12), new(Device)
    assert [(cell.pk, cell.name) for cell in cells_of(Proxy)] == [(str(row.pk), str(row)) for row in proxies]
    assert [(cell.pk, cell.name) for cell in cells_of(Device)] == [(str(device.pk), device.name)]


def test_a_held_one_tells_by_whom_since_when_and_until_when() -> None:
    proxy = new(Proxy)
    lease = hold(proxy, holder="me", ttl=50)
    Event.objects.create(
        at=DbLater(-100),
        what=EventKind.ACQUIRED,
        pool="resourcepool.proxy",
        row=str(proxy.pk),
        fence=lease.fence,
    )
    (cell,) = cells_of(Proxy)
    assert (cell.state, cell.note) == (State.LEASED, "me")
    assert 99 < (cell.held or 0) < 160
    assert 0 < (cell.ends or 0) <= 50


@pytest.mark.parametrize("was_held", [False, True])
def test_one_that_is_quarantined_tells_why_and_until_when(was_held: bool) -> None:
    proxy = new(Proxy)
    lease = hold(proxy) if was_held else None
    Proxy.objects.filter(pk=proxy.pk).quarantine("banned", 600)
    if lease:
        lease.release()
    (cell,) = cells_of(Proxy)
    assert (cell.state, cell.note, cell.held) == (State.QUARANTINED, "banned", None)
    assert 500 < (cell.ends or 0) <= 600


def test_one_whose_quarantine_is_over_gives_no_reason_any_more() -> None:
    proxy = new(Proxy)
    Proxy.objects.filter(pk=proxy.pk).quarantine("banned", 600)
    change(proxy, busy_before=DbLater(50), until=DbLater(-1))
    (cell,) = cells_of(Proxy)
    assert (cell.state, cell.note) == (State.COOLING, "")


def test_what_happened_lately_is_counted_by_pool() -> None:
    for what, ago in (
        (EventKind.ACQUIRED, 5),
        (EventKind.ACQUIRED, 5),
        (EventKind.ACQUIRED, 500),
        (EventKind.LOST, 500),
        (EventKind.EXPIRED, 5_000),
        (EventKind.RELEASED, 5),
        (EventKind.LEAKED, 5),
    ):
        Event.objects.create(at=DbLater(-ago), what=what, pool="resourcepool.proxy", row="1")
    for what, ago in ((EventKind.RELEASED, 5), (EventKind.HANDED_OVER, 5), (EventKind.FIXED, 500)):
        Event.objects.create(
            at=DbLater(-ago), what=what, pool="resourcepool.proxy", row="1", seconds=0.1, is_whole=True
        )
    Event.objects.create(at=DbLater(-5), what=EventKind.ACQUIRED, pool="testapp.device", row="1")
    assert recent_events(["resourcepool.Proxy"]) == {
        "resourcepool.proxy": RecentEvents(acquired=4, lost=1, leaked=1)
    }

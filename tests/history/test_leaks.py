"""A reported leak is open until its lease ends or an operator acknowledges it."""

from typing import Any

import pytest

from resourcepool.history.models import acknowledge, open_leaks, select_open_leaks
from resourcepool.models import Event, Proxy
from resourcepool.signals import EventKind
from tests.admin.conftest import event, lease
from tests.app.models import Device
from tests.app.rows import new
from tests.history.recorded import told

LABELS = ["resourcepool.Proxy", "testapp.Device"]


@pytest.fixture
def proxy() -> Any:
    row = new(Proxy)
    lease(row, "crawler 7")
    event(row, EventKind.LEAKED)
    return row


def test_they_are_counted_by_pool_and_each_lease_once(proxy: Any) -> None:
    device = new(Device)
    lease(device)
    event(device, EventKind.LEAKED)
    event(device, EventKind.LEAKED)  # written twice, after a lost connection
    assert open_leaks(LABELS) == {"resourcepool.Proxy": 1, "testapp.Device": 1}
    assert open_leaks(["testapp.Device"]) == {"testapp.Device": 1}


@pytest.mark.parametrize(
    ("what", "more", "is_open"),
    [
        *(
            (EventKind(what), {}, False)
            for what in ("released", "handed_over", "lost", "expired", "revoked", "fixed")
        ),
        (EventKind.QUARANTINED, {"seconds": 7.5}, False),  # by the holder, which ends the lease
        *(
            (EventKind(what), {"actor": "joe"}, True)
            for what in ("quarantined", "drained", "reserved", "checked")
        ),
    ],
)
def test_one_is_over_when_its_lease_ends_whatever_else_is_done_to_the_resource(
    proxy: Any, what: EventKind, more: dict[str, Any], is_open: bool
) -> None:
    event(proxy, what, **more)
    assert open_leaks(LABELS) == ({"resourcepool.Proxy": 1} if is_open else {})


def test_one_is_over_when_the_history_knows_of_a_later_lease(proxy: Any) -> None:
    lease(proxy, "crawler 8")
    event(proxy, EventKind.ACQUIRED)
    assert open_leaks(LABELS) == {}


def test_one_of_more_than_an_hour_ago_is_over() -> None:
    row = new(Proxy)
    lease(row)
    event(row, EventKind.LEAKED, ago=3_700)
    assert open_leaks(LABELS) == {}


def test_what_happened_to_another_row_or_pool_ends_no_leak(proxy: Any) -> None:
    event(proxy, EventKind.RELEASED, row="987654")
    event(proxy, EventKind.RELEASED, pool="testapp.device")
    assert open_leaks(LABELS) == {"resourcepool.Proxy": 1}


def test_an_acknowledged_one_is_over_and_the_history_tells_who_knows(proxy: Any) -> None:
    before = dict(Proxy.objects.values().get())
    assert acknowledge(Proxy.objects.all(), "the nightly import", "ann") == 1
    assert told(proxy) == ["leaked", "acknowledged"]
    said = Event.objects.get(what=EventKind.ACKNOWLEDGED)
    assert (said.actor, said.reason, said.holder) == ("ann", "the nightly import", "crawler 7")
    assert open_leaks(LABELS) == {}
    assert acknowledge(Proxy.objects.all(), "again", "ann") == 0
    assert dict(Proxy.objects.values().get()) == before


def test_another_leak_of_the_same_resource_is_another_one(proxy: Any) -> None:
    acknowledge(Proxy.objects.all(), "known", "ann")
    told(proxy)
    lease(proxy, "crawler 8")
    event(proxy, EventKind.LEAKED)
    assert open_leaks(LABELS) == {"resourcepool.Proxy": 1}
    assert select_open_leaks(Proxy, [(proxy.pk, proxy.fence), (proxy.pk, proxy.fence - 1)]) == [
        (proxy.pk, proxy.fence)
    ]

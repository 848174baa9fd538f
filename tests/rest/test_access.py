"""Every URL is closed by default, for callers with every combination of permissions."""

from collections.abc import Callable
from typing import Any

import pytest
from django.urls import URLPattern

from resourcepool.locks.channels.models import Channel as ChannelRow
from resourcepool.models import Proxy, QueueGroup, Stream
from resourcepool.operations import OPERATIONS
from resourcepool.rest.grants import Token
from resourcepool.rest.urls import urlpatterns
from tests.app.rows import hold, new
from tests.rest.conftest import Caller

LOCKS = ("view_lock", "view_semaphorepermit", "view_rwlockpermit", "view_conditionwaiter", "view_barrier")
QUEUES = ("view_queuegroup", "view_server")
OF_PLACES = {
    "streams": ("view_stream", "view_task"),
    "dispensers": ("view_dispenser", "view_dispensertask"),
    "topics": ("view_topic", "view_timer"),
    "channels": ("view_channel", "view_subscription"),
    "elections": ("view_election",),
}
# {URL: (permissions that it needs, body)}.
GETS: dict[str, tuple[str, ...]] = {
    "pools/<str:pool>": ("view_proxy",),
    "pools/<str:pool>/leases": ("view_proxy",),
    "pools/<str:pool>/resources": ("view_proxy",),
    "pools/<str:pool>/resources/<path:pk>": ("view_proxy",),
    "pools/<str:pool>/operations": ("view_proxy",),
    "locks": LOCKS,
    "locks/<path:name>": LOCKS,
    "queues": QUEUES,
    "queues/<path:name>": (*QUEUES, "view_queue"),
    **OF_PLACES,
    **{f"{kind}/<path:name>": needed for kind, needed in OF_PLACES.items()},
}
POSTS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "pools/<str:pool>/acquire": (("lease_proxy",), {}),
    "leases/renew": (("lease_proxy",), {"lease": ""}),
    "leases/release": (("lease_proxy",), {"lease": ""}),
    "leases/quarantine": (("lease_proxy", "quarantine_proxy"), {"lease": "", "reason": "x"}),
    "pools/<str:pool>/operations/<str:name>": (("view_proxy", "operate_proxy"), {"all": True, "reason": "x"}),
    "locks/<path:name>/acquire": (("lease_lock",), {}),
    "streams/<path:name>/submit": (("submit_stream",), {"type": "t"}),
    "channels/<path:name>/publish": (("publish_channel",), {"payload": 1}),
}
FOR_ALL = ("", "pools", "metrics", "openapi")  # they show what the caller may view
FOR_WHO_SEES_ALL = ("alarms",)
PARTS = {"<str:pool>": "proxy", "<str:name>": "revoke", "<path:name>": "x"}


def addresses() -> list[str]:
    return [str(one.pattern) for one in urlpatterns if isinstance(one, URLPattern)]


def test_every_address_is_tried_here() -> None:
    assert {*addresses()} == {*GETS, *POSTS, *FOR_ALL, *FOR_WHO_SEES_ALL}


def filled(address: str, row: Any) -> str:
    for part, value in {**PARTS, "<path:pk>": str(row.pk)}.items():
        address = address.replace(part, value)
    return address


@pytest.fixture
def row(db: None) -> Any:
    Stream.objects.create(name="x")
    ChannelRow.objects.create(name="x")
    QueueGroup.objects.create(name="x")
    return new(Proxy)


@pytest.mark.parametrize("address", addresses())
def test_nobody_who_is_not_logged_in_gets_anything(row: Any, address: str) -> None:
    nobody = Caller(None)
    answer = (nobody.post if address in POSTS else nobody.get)(filled(address, row))
    assert answer.status_code == 403 or answer.status_code == 401
    assert "credentials" in answer.json()["detail"]
    assert answer.json()["error"] == "NotAuthenticated"


@pytest.mark.parametrize("address", GETS)
def test_a_reading_takes_each_of_its_permissions(row: Any, call: Callable[..., Caller], address: str) -> None:
    needed = GETS[address]
    for missing in needed:
        less = call(*(one for one in needed if one != missing), name=f"without {missing}")
        answer = less.get(filled(address, row))
        assert (answer.status_code, missing in answer.json()["detail"]) == (403, True)
    assert call(*needed).get(filled(address, row)).status_code in (200, 404)  # 404: no such name


@pytest.mark.parametrize("address", POSTS)
def test_an_act_takes_each_of_its_permissions(row: Any, call: Callable[..., Caller], address: str) -> None:
    needed, sent = POSTS[address]
    if "lease" in sent:
        sent = {**sent, "lease": call("lease_proxy", name="holder").got("pools/proxy/acquire")["lease"]}
    elif "operations" in address:
        hold(row)
    for missing in needed:
        less = call(*(one for one in needed if one != missing), name=f"without {missing}")
        answer = less.post(filled(address, row), **sent)
        assert (answer.status_code, missing in answer.json()["detail"]) == (403, True)
    assert call(*needed).post(filled(address, row), **sent).status_code < 300


def test_pools_that_one_may_not_view_are_not_listed(row: Any, call: Callable[..., Caller]) -> None:
    assert call("view_proxy", name="a").get("pools").json()["pools"][0]["label"] == "resourcepool.Proxy"
    assert call(name="b").get("pools").json() == {"pools": []}


def test_who_asks_for_a_pool_that_is_not_there_is_told_of_those_alone_that_he_may_use(
    call: Callable[..., Caller],
) -> None:
    for address in ("pools/no", "pools/no/leases", "pools/no/resources/1", "pools/no/operations"):
        answer = call("view_proxy", "lease_device", name=f"views {address}").get(address)
        assert (answer.status_code, answer.json()["name"]) == (404, "pool")
        assert "resourcepool.Proxy" in answer.json()["detail"]
        assert "testapp" not in answer.json()["detail"]
    token = Token("shop.phone", "1", 1, "me", 0.0, 1.0, 0.0, None).signed()
    for nobody in (
        call(name="a").get("pools/no"),
        call("view_proxy", name="b").post("pools/no/acquire"),
        call("view_proxy", name="c").post("leases/release", lease=token),
    ):
        said = nobody.json()["detail"]
        assert "resourcepool" not in said
        assert "testapp" not in said


def test_alarms_are_for_who_may_view_everything(
    transactional_db: None, row: Any, call: Callable[..., Caller], root: Caller
) -> None:
    assert call("view_proxy").get("alarms").status_code == 403
    assert "sweep_stale" in [one["kind"] for one in root.get("alarms").json()["alarms"]]


def test_who_may_lease_may_not_operate(row: Any, crawler: Caller) -> None:
    for name in (name for name, one in OPERATIONS.items() if one.is_for(Proxy)):
        assert crawler.post(f"pools/proxy/operations/{name}", all=True).status_code == 403

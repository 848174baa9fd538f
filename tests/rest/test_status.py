"""Statuses over REST: the same as those of the dashboard and the commands, in pages."""

from typing import Any

import pytest

from resourcepool.locks import Channel, Lock
from resourcepool.models import Proxy, Stream
from resourcepool.queues import administration
from resourcepool.resources.state import State
from resourcepool.status.resources import why
from resourcepool.taskqueue import submit
from tests.app.rows import hold, new, several
from tests.rest.conftest import Caller


def test_a_pool_is_told_of_as_status_tells_of_it(transactional_db: None, root: Caller) -> None:
    several(Proxy, 2)
    hold(new(Proxy), holder="me")
    found = root.get("pools/proxy").json()
    assert (found["counts"]["free"], found["counts"]["leased"], found["total"]) == (2, 1, 3)
    assert found in root.get("pools").json()["pools"] or found["label"] == "resourcepool.Proxy"
    leases = root.get("pools/proxy/leases").json()
    assert (leases["total"], leases["leases"][0]["holder"]) == (1, "me")
    assert root.get("pools/proxy/leases", holder="nobody").json() == {"leases": [], "total": 0}


def test_resources_come_a_page_at_a_time_each_once_and_without_secrets(root: Caller) -> None:
    rows, after, seen, pages = several(Proxy, 5, username="joe", password="sesame"), "", list[int](), 0
    while pages == 0 or after:
        answer = root.get("pools/proxy/resources", limit=2, **({"after": after} if after else {}))
        assert "sesame" not in answer.content.decode()
        seen += [one["id"] for one in answer.json()["resources"]]
        after, pages = answer.json()["after"], pages + 1
    assert (seen, pages) == ([row.pk for row in rows], 3)


def test_resources_are_chosen_by_state_and_tags(root: Caller) -> None:
    eu, fast, held = new(Proxy, tags="eu"), new(Proxy, tags="eu fast"), new(Proxy)
    hold(held)
    for query, wanted in (
        ({"state": State.LEASED}, [held]),
        ({"tag": "fast"}, [fast]),
        ({"tag": ["eu", "fast"]}, [fast]),
        ({"tag": "eu", "state": "free"}, [eu, fast]),
    ):
        found = root.get("pools/proxy/resources", **query).json()["resources"]
        assert [one["id"] for one in found] == [row.pk for row in wanted]


def test_one_resource_says_why(root: Caller) -> None:
    row = new(Proxy)
    hold(row, holder="me")
    found = root.get(f"pools/proxy/resources/{row.pk}").json()
    assert (found["state"], found["lease"]["holder"]) == ("leased", "me")
    assert found["explanation"].startswith("It is leased")


def test_one_that_is_deleted_just_now_is_there_no_more(root: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    row, read = new(Proxy), why.resource

    def read_late(found: Any) -> Any:
        Proxy.objects.all()._raw_delete("default")
        return read(found)

    monkeypatch.setattr(why, "resource", read_late)
    answer = root.get(f"pools/proxy/resources/{row.pk}")
    assert (answer.status_code, answer.json()["name"]) == (404, "id")


def test_what_is_known_by_name(root: Caller) -> None:
    for name in ("a", "b", "c/d"):
        Stream.objects.create(name=name)
        submit(name, "note")
    first = root.get("streams", limit=2).json()
    assert ([one["name"] for one in first["streams"]], first["after"]) == (["a", "b"], "b")
    assert root.get("streams", after="b").json()["streams"][0]["name"] == "c/d"
    assert root.get("streams/c/d").json()["depth"] == 1
    Channel("news").publish(1)
    assert root.get("channels/news").json()["last"] == 1
    for kind in ("dispensers", "topics", "elections"):
        assert root.get(kind).json() == {kind: [], "after": ""}


def test_locks_are_told_of_with_their_holders(root: Caller) -> None:
    with Lock("nightly/report"):
        (found,) = root.get("locks", prefix="nightly").json()["locks"]
        assert (found["name"], found["held"]) == ("nightly/report", 1)
        (in_full,) = root.get("locks/nightly/report").json()["locks"]
        assert in_full["holders"][0]["fence"] == found["holders"][0]["fence"]
    assert root.get("locks/nothing").json() == {"locks": []}


def test_queues_are_told_of_with_their_queue_group(root: Caller) -> None:
    administration.create("orders", ["1", "2", "3"])
    assert root.get("queues").json()["queue_groups"][0]["name"] == "orders"
    found = root.get("queues/orders", limit=2).json()
    assert [one["queue_id"] for one in found["queues"]] == ["1", "2"]


def test_the_root_lists_every_address(root: Caller) -> None:
    assert "pools/<str:pool>/acquire" in root.get("").json()["addresses"]


WRONG = [
    ("pools/proxy", {"limit": 1}, "limit"),
    ("pools/proxy/resources", {"limit": 0}, "limit"),
    ("pools/proxy/resources", {"limit": 201}, "limit"),
    ("pools/proxy/resources", {"limit": "9" * 5_000}, "limit"),
    ("pools/proxy/resources", {"limit": "٣"}, "limit"),
    ("pools/proxy/resources", {"state": "fre"}, "state"),
    ("pools/proxy/resources", {"tag": "no tag!"}, "tags"),
    ("pools/proxy/resources", {"after": "x"}, "after"),
    ("pools/proxy/resources", {"page": "2"}, "page"),
    ("pools/proxy/leases", {"limit": "-1"}, "limit"),
    ("streams", {"status": "x"}, "status"),
    ("streams", {"after": "a\0b"}, "after"),
    ("locks", {"kind": "x"}, "kind"),
]
NOT_THERE = [
    ("pools/nothing", "pool"),
    ("pools/nothing/resources", "pool"),
    ("pools/proxy/resources/x", "id"),
    ("pools/proxy/resources/1", "id"),
    ("pools/proxy/resources/a/b", "id"),
    ("pools/proxy/resources/999999999999999999999", "id"),
    ("streams/none", "stream"),
    ("topics/none", "topic"),
    ("queues/none", "queue_group"),
]


@pytest.mark.parametrize(("address", "query", "name"), WRONG, ids=lambda one: str(one)[:40])
def test_what_is_wrong_is_named(root: Caller, address: str, query: dict[str, Any], name: str) -> None:
    answer = root.get(address, **query)
    assert (answer.status_code, answer.json()["error"], answer.json()["name"]) == (400, "BadOption", name)


@pytest.mark.parametrize(("address", "name"), NOT_THERE)
def test_what_an_address_names_and_is_not_there_is_not_found(root: Caller, address: str, name: str) -> None:
    answer = root.get(address)
    assert (answer.status_code, answer.json()["error"], answer.json()["name"]) == (404, "NotFound", name)


@pytest.mark.parametrize("name", ["a/acquire", "acquire/acquire", "a/acquire/b", "a/acquire/acquire"])
def test_a_lock_with_the_name_of_an_act_is_taken_and_read(root: Caller, name: str) -> None:
    root.got(f"locks/{name}/acquire")
    (found,) = root.get(f"locks/{name}", kind="lock").json()["locks"]
    assert found["name"] == name
    assert root.get(f"locks/{name}", nothing="x").json()["name"] == "nothing"


def test_a_stream_and_a_channel_with_the_name_of_an_act_are_read(root: Caller) -> None:
    Stream.objects.create(name="a/submit")
    root.got("streams/a/submit/submit", type="t")
    assert root.get("streams/a/submit").json()["name"] == "a/submit"
    root.got("channels/a/publish/publish", payload=1)
    assert root.get("channels/a/publish").json()["name"] == "a/publish"


def test_who_may_not_view_it_does_not_read_it_at_the_address_of_an_act(call: Any) -> None:
    assert call("lease_lock").get("locks/a/acquire").status_code == 403

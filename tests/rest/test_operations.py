"""Operations over REST: the same as in the admin and the commands, with the same names."""

from typing import Any

import pytest

from resourcepool.models import Proxy, Stream, Task
from resourcepool.operations import OPERATIONS
from tests.app.rows import columns, hold, new, several
from tests.rest.conftest import Caller

OF_PROXIES = [name for name, one in OPERATIONS.items() if one.is_for(Proxy)]


@pytest.mark.parametrize("name", OF_PROXIES)
def test_a_dry_run_of_each_finds_and_changes_nothing(root: Caller, name: str) -> None:
    rows = several(Proxy, 2)
    hold(rows[0])
    before = [columns(row) for row in rows]
    answer = root.got(f"pools/proxy/operations/{name}", 200, all=True, dry_run=True)
    assert (answer["dry_run"], answer["changed"]) == (True, 0)
    assert [columns(row) for row in rows] == before


def test_they_are_listed_with_what_they_ask_for(root: Caller) -> None:
    listed = {one["name"]: one for one in root.get("pools/proxy/operations").json()["operations"]}
    assert [*listed] == OF_PROXIES
    fields = {one["name"]: one["type"] for one in listed["quarantine"]["fields"]}
    assert fields == {"reason": "text", "duration": "seconds"}


WRONG = [
    ({}, "ids"),
    ({"ids": [], "all": False}, "ids"),
    ({"ids": [1], "all": True}, "ids"),
    ({"ids": "1", "all": True}, "ids"),
    ({"ids": [10**30]}, "id"),
    ({"ids": ["x"]}, "id"),
    ({"all": "yes"}, "all"),
    ({"all": True, "dry_run": 1}, "dry_run"),
    ({"all": True, "reason": ""}, "reason"),
    ({"all": True, "reason": "a\nb"}, "reason"),
    ({"all": True, "name": "Ann"}, "name"),
]


@pytest.mark.parametrize(("sent", "name"), WRONG, ids=lambda one: str(one)[:40])
def test_what_is_wrong_is_named_and_nothing_is_changed(root: Caller, sent: dict[str, Any], name: str) -> None:
    row = new(Proxy)
    answer = root.post("pools/proxy/operations/drain", **{"reason": "x", **sent})
    assert (answer.status_code, answer.json()["name"]) == (400, name)
    assert columns(row)["in_service"]


def test_what_there_is_not_is_named(root: Caller) -> None:
    answer = root.post("pools/proxy/operations/quarantin")
    assert (answer.status_code, answer.json()["name"]) == (404, "operation")
    assert "quarantine" in answer.json()["detail"]


def test_a_stream_that_is_not_there_is_not_found_but_a_name_in_the_body_is_wrong(root: Caller) -> None:
    answer = root.post("streams/none/submit", type="Reindex")
    assert (answer.status_code, answer.json()["name"]) == (404, "stream")
    answer = root.post("streams/none/submit", type="Reindex", stream="none")
    assert (answer.status_code, answer.json()["name"]) == (400, "stream")


def test_a_task_is_submitted_once_under_a_key(root: Caller) -> None:
    Stream.objects.create(name="oracle")
    sent = {"type": "Reindex", "params": {"table": "a"}, "key": "req-42"}
    assert root.got("streams/oracle/submit", 201, **sent) == {"key": "req-42", "is_new": True}
    assert root.got("streams/oracle/submit", 200, **sent) == {"key": "req-42", "is_new": False}
    assert Task.objects.get().params == '{"table": "a"}'


@pytest.mark.parametrize(
    ("sent", "name"), [({}, "type"), ({"type": 7}, "type"), ({"type": "a", "params": []}, "params")]
)
def test_a_task_that_is_none_is_refused(root: Caller, sent: dict[str, Any], name: str) -> None:
    Stream.objects.create(name="oracle")
    answer = root.post("streams/oracle/submit", **sent)
    assert (answer.status_code, answer.json()["name"]) == (400, name)
    assert not Task.objects.exists()


def test_messages_are_numbered(root: Caller) -> None:
    assert [root.got("channels/config/publish", payload={"level": n})["number"] for n in (3, 4)] == [1, 2]
    assert root.post("channels/config/publish").json()["name"] == "payload"


@pytest.mark.parametrize("missing", ["reason", "duration"])
def test_a_field_that_is_missing_is_said_to_be_required(root: Caller, missing: str) -> None:
    given = {"ids": [several(Proxy, 1)[0].pk], "reason": "x", "duration": 60}
    del given[missing]
    refused = root.got("pools/proxy/operations/quarantine", 400, **given)
    assert refused["detail"].startswith(f"{missing}: required, ")
    assert "not allowed" not in refused["detail"]

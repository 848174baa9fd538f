"""A request that is repeated because its response was lost gets the same lease; no other request does."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import Proxy
from tests.app.rows import columns, expire, new, several
from tests.eventually import at_once
from tests.rest.conftest import Caller, user


def test_sent_again_it_is_answered_with_the_same_resource(crawler: Caller) -> None:
    several(Proxy, 3)
    first, again = (crawler.got("pools/proxy/acquire", request_id="r-1") for _ in range(2))
    assert (first["id"], first["resource"]) == (again["id"], again["resource"])
    crawler.got("leases/renew", 200, lease=again["lease"])


def test_the_answer_that_was_lost_is_of_no_use_any_more(crawler: Caller) -> None:
    row = new(Proxy)
    first, again = (crawler.got("pools/proxy/acquire", request_id="r-1") for _ in range(2))
    assert crawler.post("leases/release", lease=first["lease"]).status_code == 409
    assert (columns(row)["fence"], columns(row)["holder"]) == (again["fence"], again["holder"])


def test_in_a_transaction_which_may_be_undone_it_gets_nothing(transactional_db: None, crawler: Caller) -> None:
    row = new(Proxy)
    first = crawler.got("pools/proxy/acquire", request_id="r-1")
    with transaction.atomic():
        answer = crawler.post("pools/proxy/acquire", request_id="r-1")
    assert (answer.status_code, answer.json()["error"]) == (409, "ClaimInTransaction")
    assert columns(row)["fence"] == first["fence"]


def test_sent_again_from_another_address_it_is_the_same_request(crawler: Caller) -> None:
    several(Proxy, 3)
    hosts = ("192.0.2.1", "192.0.2.2")
    got = [crawler.post_from(host, "pools/proxy/acquire", request_id="r-1").json()["id"] for host in hosts]
    assert got[0] == got[1]


def test_another_request_gets_another(crawler: Caller) -> None:
    several(Proxy, 2)
    assert len({crawler.got("pools/proxy/acquire", request_id=one)["id"] for one in ("r", "R")}) == 2


def test_after_its_end_it_is_a_new_request(crawler: Caller) -> None:
    row = new(Proxy)
    first = crawler.got("pools/proxy/acquire", request_id="r")
    expire(row)
    assert crawler.got("pools/proxy/acquire", request_id="r")["fence"] > first["fence"]


@pytest.mark.parametrize(
    ("first", "again", "names"),
    [
        ({"where": {"country": "DE"}}, {"where": {"country": "US"}}, ["where"]),
        ({}, {"where": {"country": "US"}}, ["where"]),
        ({"ttl": 30}, {"ttl": 31}, ["ttl"]),
        ({"cooldown": 1}, {}, ["cooldown"]),
        ({"max_hold": 60}, {"max_hold": 90, "ttl": 20}, ["ttl", "max_hold"]),
        ({"holder": "a"}, {"holder": "b"}, ["holder"]),
    ],
    ids=str,
)
def test_sent_again_with_other_parameters_it_is_refused_and_these_are_named(
    crawler: Caller, first: Any, again: Any, names: list[str]
) -> None:
    rows = [new(Proxy, country="DE"), new(Proxy, country="US")]
    got = crawler.got("pools/proxy/acquire", request_id="r", **first)
    answer = crawler.post("pools/proxy/acquire", request_id="r", **again)
    assert (answer.status_code, answer.json()["name"]) == (400, "request_id")
    for name in ("where", "ttl", "cooldown", "max_hold", "holder"):
        assert (f"another {name}" in answer.json()["detail"]) == (name in names)
    assert {row.pk for row in rows if columns(row)["holder"]} == {got["id"]}
    crawler.got("leases/renew", 200, lease=got["lease"])  # as it was granted


def test_a_lock_sent_again_with_other_parameters_is_refused(crawler: Caller) -> None:
    crawler.got("locks/nightly/acquire", request_id="r", ttl=30)
    answer = crawler.post("locks/nightly/acquire", request_id="r", ttl=40)
    assert (answer.status_code, "another ttl" in answer.json()["detail"]) == (400, True)


def test_a_number_is_the_same_however_it_is_written(crawler: Caller) -> None:
    row = new(Proxy)
    where = {"where": {"port": row.port}, "request_id": "r"}
    first = crawler.got("pools/proxy/acquire", ttl=60, **where)
    assert crawler.got("pools/proxy/acquire", ttl=60.0, **where)["id"] == first["id"]


def test_how_it_is_waited_for_may_differ(crawler: Caller) -> None:
    several(Proxy, 3)
    first = crawler.got("pools/proxy/acquire", request_id="r", where={}, timeout=5, priority=3)
    again = crawler.got("pools/proxy/acquire", request_id="r", where={}, strategy="random")
    assert first["id"] == again["id"]


@pytest.mark.parametrize("other", ["r ~AAAAAAAAAAAA of user 1", "x #r", "r ~", "%", "R"])
def test_a_name_that_looks_like_another_request_is_none(crawler: Caller, other: str) -> None:
    several(Proxy, 2)
    got = [crawler.got("pools/proxy/acquire", request_id=one)["id"] for one in ("r", other, "r", other)]
    assert got[0] == got[2] != got[1] == got[3]


def test_two_users_with_the_same_names_get_two(crawler: Caller) -> None:
    several(Proxy, 2)
    other = Caller(user("other", "lease_proxy"))
    asked = {"holder": "crawler", "request_id": "r"}
    assert len({one.got("pools/proxy/acquire", **asked)["id"] for one in (crawler, other)}) == 2


def test_sent_many_times_at_once_the_next_answer_is_about_one_lease(transactional_db: None) -> None:
    rows, boss = several(Proxy, 8), User.objects.create_superuser("root")
    at_once(6, lambda _: Caller(boss).got("pools/proxy/acquire", request_id="r", timeout=20))
    held = [row.pk for row in rows if columns(row)["holder"]]
    last = Caller(boss).got("pools/proxy/acquire", request_id="r")
    assert last["id"] == held[0]
    assert [row.pk for row in rows if columns(row)["holder"]] == held


def test_a_lock_sent_again_is_the_same_too(crawler: Caller) -> None:
    first, again = (crawler.got("locks/nightly/acquire", request_id="r") for _ in range(2))
    assert first["fence"] < again["fence"]
    assert crawler.post("locks/nightly/acquire", request_id="other").status_code == 423
    assert LockRow.objects.get().fence == again["fence"]

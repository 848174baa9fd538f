"""A request that is sent again, because its answer was lost, gets the same lease; nobody else does."""

import threading
from typing import Any

import pytest
from django.contrib.auth.models import User

from resourcepool.models import Mutex, Proxy
from resourcepool.rest import leasing
from tests.app.rows import columns, expire, new, several
from tests.rest.conftest import Caller, user


def test_sent_again_it_is_answered_with_the_same_lease(crawler: Caller) -> None:
    several(Proxy, 3)
    first, again = (crawler.got("pools/proxy/acquire", request_id="r-1") for _ in range(2))
    assert (first["id"], first["fence"]) == (again["id"], again["fence"])
    crawler.got("leases/release", 204, lease=first["lease"])
    assert crawler.post("leases/release", lease=again["lease"]).status_code == 409


def test_another_request_gets_another(crawler: Caller) -> None:
    several(Proxy, 2)
    assert len({crawler.got("pools/proxy/acquire", request_id=one)["id"] for one in ("r", "R")}) == 2


def test_after_its_end_it_is_a_new_request(crawler: Caller) -> None:
    row = new(Proxy)
    first = crawler.got("pools/proxy/acquire", request_id="r")
    expire(row)
    assert crawler.got("pools/proxy/acquire", request_id="r")["fence"] > first["fence"]


def test_two_users_with_the_same_names_get_two(crawler: Caller) -> None:
    several(Proxy, 2)
    other = Caller(user("other", "lease_proxy"))
    asked = {"holder": "crawler", "request_id": "r"}
    assert len({one.got("pools/proxy/acquire", **asked)["id"] for one in (crawler, other)}) == 2


def test_sent_many_times_at_once_all_answers_are_about_one_lease(transactional_db: None) -> None:
    rows, boss, answers = several(Proxy, 8), User.objects.create_superuser("root"), list[Any]()

    def send() -> None:
        answers.append(Caller(boss).got("pools/proxy/acquire", request_id="r", timeout=20))

    threads = [threading.Thread(target=send) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert len(answers) == 6
    held = [row.pk for row in rows if columns(row)["holder"]]
    last = Caller(boss).got("pools/proxy/acquire", request_id="r")
    assert last["id"] == held[0] == min(one["id"] for one in answers)


def test_of_two_that_came_at_once_the_one_that_sees_the_other_gives_its_own_back(
    crawler: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = several(Proxy, 2)
    got = crawler.got("pools/proxy/acquire", request_id="r", where={"host": first.host})
    looks = iter([None])  # it began before there was anything to see
    see = leasing.granted_before
    monkeypatch.setattr(leasing, "granted_before", lambda *asked: next(looks, see(*asked)))
    again = crawler.got("pools/proxy/acquire", request_id="r", where={"host": second.host})
    assert (again["id"], again["fence"]) == (first.pk, got["fence"])
    assert columns(second)["holder"] == ""


def test_a_lock_sent_again_is_the_same_too(crawler: Caller) -> None:
    first, again = (crawler.got("locks/nightly/acquire", request_id="r") for _ in range(2))
    assert first["fence"] == again["fence"]
    assert crawler.post("locks/nightly/acquire", request_id="other").status_code == 423
    assert Mutex.objects.get().fence == first["fence"]

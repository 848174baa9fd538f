"""The limits of a user over REST, whatever other users hold."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from resourcepool.models import Proxy, Ticket
from resourcepool.rest import grants
from resourcepool.rest.grants import Token
from tests.app.rows import columns, expire, hold, new, several
from tests.eventually import InBackground, at_once, eventually
from tests.rest.conftest import Caller, user


@pytest.fixture
def limit(settings: Any) -> Any:
    """``limit(leases=2)``: of proxies; with ``model``, of that one."""

    def put(model: str = "resourcepool.Proxy", **limits: Any) -> None:
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "REST_LIMITS": {model: limits}}

    return put


@pytest.mark.parametrize(
    ("limits", "beyond", "within"),
    [
        ({"ttl": 120}, {"ttl": 121}, {"ttl": 120}),
        ({"cooldown": 10}, {"cooldown": 11}, {"cooldown": 10}),
        ({"max_hold": 60}, {"max_hold": 61}, {"max_hold": 60}),
        ({"priority": 0}, {"priority": -1}, {"priority": 0}),
    ],
    ids=str,
)
def test_what_is_asked_for_beyond_a_limit_is_refused(
    crawler: Caller, limit: Any, limits: Any, beyond: Any, within: Any
) -> None:
    row = new(Proxy)
    limit(**limits)
    answer = crawler.post("pools/proxy/acquire", **beyond)
    assert (answer.status_code, [answer.json()["name"]]) == (400, [*beyond])
    assert columns(row)["holder"] == ""
    crawler.got("pools/proxy/acquire", **within)


def test_what_is_not_asked_for_is_within_the_limits(transactional_db: None, limit: Any) -> None:
    boss, lease = User.objects.create_superuser("root"), hold(new(Proxy))
    limit(ttl=20, priority=100)
    waiting = InBackground(lambda: Caller(boss).got("pools/proxy/acquire", timeout=25))
    eventually(lambda: Ticket.objects.waiting().exists())
    assert Ticket.objects.get().priority == 100
    lease.release()
    assert waiting.result()["ttl"] == 20


def test_no_lease_is_held_for_longer_than_its_limit_though_nobody_asked_for_one(
    crawler: Caller, limit: Any
) -> None:
    new(Proxy)
    limit(max_hold=60)
    got = crawler.got("pools/proxy/acquire")
    assert Token.read(got["lease"]).max_hold == 60


def test_a_lock_has_limits_of_its_own(crawler: Caller, limit: Any) -> None:
    limit("resourcepool.Lock", ttl=10, leases=1)
    assert crawler.post("locks/a/acquire", ttl=11).json()["name"] == "ttl"
    assert crawler.got("locks/a/acquire")["ttl"] == 10
    assert crawler.post("locks/b/acquire").json()["error"] == "TooManyLeases"


def test_a_user_who_has_enough_gets_no_more_until_one_is_over(crawler: Caller, limit: Any) -> None:
    several(Proxy, 5)
    limit(leases=2)
    first, second = (crawler.got("pools/proxy/acquire", holder=name) for name in ("a", "b of user 9"))
    answer = crawler.post("pools/proxy/acquire", timeout=25, holder="c")
    assert (answer.status_code, answer.json()["error"]) == (423, "TooManyLeases")
    assert 1 <= int(answer["Retry-After"]) <= 5
    crawler.got("leases/release", 204, lease=first["lease"])
    crawler.got("pools/proxy/acquire")
    expire(Proxy.objects.get(pk=second["id"]))
    crawler.got("pools/proxy/acquire")
    assert Proxy.objects.held().count() == 2


def test_what_others_have_does_not_count(crawler: Caller, limit: Any) -> None:
    limit(leases=1)
    hold(new(Proxy))
    several(Proxy, 2)
    for one in (crawler, Caller(user("other", "lease_proxy"))):
        one.got("pools/proxy/acquire", holder="crawler")


def test_a_request_that_is_sent_again_is_no_further_lease(crawler: Caller, limit: Any) -> None:
    several(Proxy, 2)
    limit(leases=1)
    assert len({crawler.got("pools/proxy/acquire", request_id="r")["id"] for _ in range(3)}) == 1


def test_of_two_requests_for_the_last_lease_at_most_one_is_granted(
    crawler: Caller, limit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    several(Proxy, 3)
    limit(leases=1)
    acquire_lease = grants.acquire_lease

    def acquired_second(*wanted: Any) -> Any:
        monkeypatch.setattr(grants, "acquire_lease", acquire_lease)
        crawler.got("pools/proxy/acquire", holder="first")
        return acquire_lease(*wanted)

    monkeypatch.setattr(grants, "acquire_lease", acquired_second)
    assert crawler.post("pools/proxy/acquire", holder="second").json()["error"] == "TooManyLeases"
    assert Proxy.objects.held().get().holder.startswith("first")


def test_at_the_same_moment_a_user_gets_no_more_either(transactional_db: None, limit: Any) -> None:
    rows, boss = several(Proxy, 8), User.objects.create_superuser("root")
    limit(leases=1)
    answers = at_once(6, lambda _: Caller(boss).post("pools/proxy/acquire").status_code)
    assert {*answers} <= {201, 423}
    assert answers.count(201) <= 1
    assert sum(bool(columns(row)["holder"]) for row in rows) == answers.count(201)

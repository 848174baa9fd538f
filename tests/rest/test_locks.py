"""A program without Django holds the same lock as Python processes."""

import pytest

from resourcepool.exceptions import AcquireTimeout
from resourcepool.locks import Lock
from resourcepool.locks.models import Lock as LockRow
from tests.app.rows import lasts
from tests.rest.conftest import Caller


def test_one_holder_at_a_time_here_and_there(crawler: Caller) -> None:
    lease = crawler.got("locks/nightly-report/acquire", ttl=40, holder="cron")["lease"]
    assert lasts(LockRow.objects.get(), 40)
    assert Lock("nightly-report").acquire(blocking=False) is None
    assert crawler.post("locks/nightly-report/acquire").status_code == 423
    crawler.got("leases/renew", 200, lease=lease)
    crawler.got("leases/release", 204, lease=lease)
    with Lock("nightly-report", timeout=5) as held:
        assert crawler.post("locks/nightly-report/acquire").status_code == 423
        assert held.is_held


def test_a_higher_fence_each_time(crawler: Caller) -> None:
    first = crawler.got("locks/a/b/acquire")
    crawler.got("leases/release", 204, lease=first["lease"])
    assert crawler.got("locks/a/b/acquire")["fence"] > first["fence"]
    assert LockRow.objects.get().name == "a/b"


def test_two_that_chose_the_same_name_are_two_holders(crawler: Caller) -> None:
    names = [crawler.got(f"locks/{one}/acquire", holder="cron")["holder"] for one in "ab"]
    assert names[0] != names[1]


def test_a_lock_is_not_quarantined(crawler: Caller) -> None:
    lease = crawler.got("locks/nightly/acquire")["lease"]
    answer = crawler.post("leases/quarantine", lease=lease, reason="x")
    assert (answer.status_code, answer.json()["name"]) == (400, "lease")


@pytest.mark.parametrize("sent", [{"ttl": "x"}, {"where": {}}, {"cooldown": 1}, {"timeout": -1}])
def test_what_a_lock_has_not_is_refused(crawler: Caller, sent: dict[str, object]) -> None:
    answer = crawler.post("locks/nightly/acquire", **sent)
    assert (answer.status_code, answer.json()["name"]) == (400, next(iter(sent)))


def test_it_does_not_wait_for_longer_than_it_says(crawler: Caller) -> None:
    with Lock("nightly"):
        assert crawler.post("locks/nightly/acquire", timeout=0.1).json()["error"] == AcquireTimeout.__name__

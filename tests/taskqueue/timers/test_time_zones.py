"""A timer is due at the moment that the caller means, whatever zone the project's moments are of."""

import datetime
from typing import Any

import pytest
from django.utils import timezone

from resourcepool.db.dialect import MicrosUntil
from resourcepool.models import Timer
from resourcepool.taskqueue import timers
from tests.taskqueue.timers.runners import handling, over, states

SECOND, MINUTE, HOUR = (datetime.timedelta(seconds=seconds) for seconds in (1, 60, 3_600))


@pytest.fixture(params=[(True, "UTC"), (False, "UTC"), (False, "Asia/Shanghai"), (False, "America/New_York")])
def _zone(request: pytest.FixtureRequest, settings: Any) -> None:
    settings.USE_TZ, settings.TIME_ZONE = request.param


@pytest.mark.usefixtures("_zone")
def test_what_is_due_fires_and_what_is_not_waits_and_each_is_told_its_own_moment() -> None:
    got: dict[str, Any] = {}

    @timers.on("t")
    def note(one: Any) -> None:
        got[one.name] = one

    now = timezone.now()
    made = {
        "passed": timers.schedule("passed", topic="t", at=now - MINUTE / 2),
        "after": timers.schedule("after", topic="t", after=0),
        "each": timers.schedule("each", topic="t", every=3_600, start=now - MINUTE / 2),
        "moved": timers.schedule("moved", topic="t", after=HOUR),
    }
    timers.schedule("ahead", topic="t", at=now + HOUR)
    assert timers.reschedule("moved", at=now - MINUTE / 2) is timers.Outcome.RESCHEDULED
    with handling():
        over(3)
    assert states() == {
        "passed": "done",
        "after": "done",
        "moved": "done",
        "ahead": "pending",
        "each": "pending",
    }
    for name in ("passed", "each", "moved"):
        assert got[name].due_at == now - MINUTE / 2
        assert MINUTE / 2 - SECOND <= got[name].late_by < 10 * MINUTE
    assert made["passed"].due_at == now - MINUTE / 2
    assert abs(made["after"].due_at - now) < 5 * MINUTE
    kept = timers.schedule("each", topic="t", after=5, if_exists="keep")
    assert kept.due_at == now - MINUTE / 2 + HOUR


@pytest.mark.usefixtures("_zone")
def test_a_crontab_is_by_the_clock_of_its_own_zone(settings: Any) -> None:
    made = timers.schedule("noon", topic="t", cron="0 12 * * *", tz="Asia/Tokyo")
    due_at = made.due_at if settings.USE_TZ else timezone.make_aware(made.due_at)
    assert due_at.astimezone(datetime.UTC).time() == datetime.time(3)
    assert datetime.timedelta(0) < due_at - datetime.datetime.now(datetime.UTC) <= 24 * HOUR


@pytest.mark.parametrize("fold", [0, 1])
def test_in_the_hour_that_comes_twice_it_is_due_when_the_caller_says(settings: Any, fold: int) -> None:
    settings.USE_TZ, settings.TIME_ZONE = False, "Europe/Berlin"
    there = datetime.datetime(2031, 10, 26, fold, 10, tzinfo=datetime.UTC)
    at = timezone.make_naive(there)
    made = timers.schedule("twice", topic="t", at=at)
    assert (made.due_at, made.due_at.fold) == (at, fold)
    (micros,) = Timer.objects.values_list(MicrosUntil("due_at"), flat=True)
    left = (there - datetime.datetime.now(datetime.UTC)).total_seconds()
    assert abs(micros / 1_000_000 - left) < 5 * 60
    kept = timers.schedule("twice", topic="t", after=5, if_exists="keep")
    assert (kept.due_at, kept.due_at.fold) == (at, fold)

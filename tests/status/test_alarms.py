"""The alarms and their texts."""

import json
import logging
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
from django.utils import translation

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.models import Proxy, Stream, Task
from resourcepool.resources.state import State, Status
from resourcepool.signals import alarm_cleared, alarm_raised
from resourcepool.status.alarms import Alarm, AlarmKind, Thresholds, alarms, evaluate
from resourcepool.status.internals import JobStatus
from resourcepool.status.resources.pools import PoolStatus
from resourcepool.status.times import duration
from resourcepool.sweeps.sweep import sweep
from tests.app.rows import change, hold, new, several
from tests.waiting.threads import ticket

LIMITS = Thresholds(oldest_wait=60, oldest_task=600, late_timer=60, unread=600, sweep=600)
SWEPT = {"sweep": JobStatus("sweep", done=30, failed=None, result="", holder="")}


def pool(*, free: int = 0, leased: int = 0, **more: Any) -> PoolStatus:
    counts = {**dict.fromkeys(State, 0), State.FREE: free, State.LEASED: leased}
    return PoolStatus("resourcepool.Proxy", "proxies", counts, **more)


def kinds(
    *pools: PoolStatus, jobs: Any = SWEPT, leaked: int = 0, every: float | None = None
) -> list[AlarmKind]:
    checks = {} if every is None else {"resourcepool.Proxy": every}
    leaks = {"resourcepool.Proxy": leaked} if leaked else {}
    return [alarm.kind for alarm in evaluate(pools, jobs, leaks, LIMITS, checks)]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (pool(), []),
        (pool(free=3, leased=40), []),
        (pool(leased=40, waiters=5, oldest_wait=59), []),
        (pool(leased=40, waiters=5, oldest_wait=61), [AlarmKind.EXHAUSTED]),
        (pool(free=1, leased=40, waiters=5, oldest_wait=59), []),
        (pool(free=1, leased=40, waiters=5, oldest_wait=61), [AlarmKind.STARVED]),
        (pool(waiters=1, oldest_wait=1), [AlarmKind.NOTHING_IN_SERVICE]),
        (pool(free=1, expired=2), [AlarmKind.EXPIRED]),
        (pool(error="no such table"), [AlarmKind.UNREADABLE]),
    ],
)
def test_a_pool_is_in_trouble_when(status: PoolStatus, expected: list[AlarmKind]) -> None:
    assert kinds(status) == expected


HOLDERS = "See the holders with `manage.py resourcepool_status resourcepool.Proxy`."
BACK = "manage.py resourcepool_drain resourcepool.Proxy ID --back"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (
            pool(leased=5, waiters=2, oldest_wait=120),
            f"all 5 leased; waiters: 2, the first for 2 min. {HOLDERS}",
        ),
        (pool(waiters=1), f"no resource in service; waiters: 1. Return one with `{BACK}`."),
    ],
)
def test_it_says_what_to_do_next(status: PoolStatus, said: str) -> None:
    assert [alarm.text for alarm in evaluate([status], SWEPT, {}, LIMITS, {})] == [said]


@pytest.mark.parametrize(
    ("passed_over", "every", "expected"),
    [(1_800, 600, []), (1_801, 600, [AlarmKind.CHECK_STALE]), (10**6, None, []), (None, 600, [])],
)
def test_checks_that_stay_away_are_noticed(
    passed_over: float | None, every: float | None, expected: Any
) -> None:
    assert kinds(pool(free=1, oldest_check=10**6, passed_over=passed_over), every=every) == expected


@pytest.mark.parametrize(("count", "expected"), [({"free": 1}, [AlarmKind.CHECK_STALE]), ({"leased": 40}, [])])
def test_checks_that_never_came_are_noticed_where_there_was_anything_to_check(
    count: dict[str, int], expected: Any
) -> None:
    assert kinds(pool(**count), every=600) == expected


RAN = [
    ({"done": 100.0, "result": "5 skipped: in use"}, "last run 100 s ago: 5 skipped: in use"),
    ({"done": 10**6, "failed": 100.0, "result": "BadOption: x"}, "last run 100 s ago: BadOption: x"),
    ({"done": 10**6, "result": "3 ok", "holder": "web1"}, "running now"),
    ({"done": None, "result": "", "holder": "web1"}, "running now"),
]


def job(name: str, **stands: Any) -> JobStatus:
    return JobStatus(name, **{"done": None, "failed": None, "result": "", "holder": "", **stands})


@pytest.mark.parametrize("stands", [{"oldest_check": 10**6, "passed_over": 3_000}, {}])
@pytest.mark.parametrize(("ran", "said"), RAN)
def test_checks_that_ran_and_passed_over_something_are_not_said_to_stay_away(
    stands: Any, ran: Any, said: str
) -> None:
    check = job("check resourcepool.Proxy", **ran)
    found = evaluate(
        [pool(free=1, **stands)], {**SWEPT, check.name: check}, {}, LIMITS, {"resourcepool.Proxy": 600}
    )
    (alarm,) = [one for one in found if one.kind is AlarmKind.CHECK_STALE]
    assert said in alarm.text
    assert "beat" not in alarm.text
    assert "resourcepool_check" not in alarm.text


@pytest.mark.parametrize("ran", [{"done": 2_000.0, "result": "3 ok"}, {"failed": 2_000.0, "result": "x"}])
def test_checks_that_ran_long_ago_are_said_to_stay_away(ran: Any) -> None:
    check, stale = job("check resourcepool.Proxy", **ran), pool(free=1, oldest_check=10**6, passed_over=3_000)
    found = evaluate([stale], {**SWEPT, check.name: check}, {}, LIMITS, {"resourcepool.Proxy": 600})
    assert any(one.text.endswith("from cron, a service or Celery beat.") for one in found)


@pytest.mark.parametrize(("ran", "said"), RAN[1:])
def test_a_sweep_that_ran_and_did_not_succeed_is_not_said_to_stay_away(ran: Any, said: str) -> None:
    found = evaluate([], {"sweep": job("sweep", **ran)}, {}, LIMITS, {})
    (alarm,) = [one for one in found if one.kind is AlarmKind.SWEEP_STALE]
    assert said in alarm.text
    assert "beat" not in alarm.text
    assert "manage.py" not in alarm.text


def test_a_checker_that_seems_broken_is_one_of_its_pool() -> None:
    result = "CheckerBroken: 9 of 9 failed together"
    check = JobStatus("check resourcepool.Proxy", done=900, failed=5, result=result, holder="")
    (alarm,) = evaluate([], {**SWEPT, check.name: check}, {}, LIMITS, {"resourcepool.Proxy": 600})
    assert (alarm.kind, alarm.pool) == (AlarmKind.CHECKER_BROKEN, "resourcepool.Proxy")
    assert alarm.text == "the checker or its target seems broken: 9 of 9 failed together"


@pytest.mark.parametrize("result", ["CheckerBroken: 9 of 9 failed together", "BadOption: no such text"])
def test_a_check_that_failed_is_forgotten_once_its_pool_is_not_checked_any_more(result: str) -> None:
    check = JobStatus("check shop.Licence", done=None, failed=5, result=result, holder="")
    jobs = {**SWEPT, check.name: check}
    assert len(evaluate([], jobs, {}, LIMITS, {"shop.Licence": 600})) == 1
    assert evaluate([], jobs, {}, LIMITS, {"resourcepool.Proxy": 600}) == []


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ({"done": 600.0}, []),
        ({"done": 601.0}, [AlarmKind.SWEEP_STALE]),
        ({"done": None}, [AlarmKind.SWEEP_STALE]),
        ({"failed": 5.0, "result": "LookupError"}, [AlarmKind.JOB_FAILED]),
    ],
)
def test_a_sweep_that_stays_away_or_fails_is_noticed(job: Any, expected: list[AlarmKind]) -> None:
    assert kinds(jobs={"sweep": replace(SWEPT["sweep"], **job)}) == expected


def test_a_sweep_that_never_ran_is_noticed_and_the_command_named() -> None:
    (alarm,) = evaluate([], {}, {}, LIMITS, {})
    assert alarm.kind is AlarmKind.SWEEP_STALE
    assert "manage.py resourcepool_sweep" in alarm.text


def test_the_worst_comes_first() -> None:
    found = kinds(pool(waiters=1, expired=1), jobs={}, leaked=2)
    assert found == [AlarmKind.NOTHING_IN_SERVICE, AlarmKind.SWEEP_STALE, AlarmKind.LEAKED, AlarmKind.EXPIRED]


def test_what_is_severe_comes_before_what_is_not() -> None:
    severe = [Alarm(kind, "", "").is_severe for kind in AlarmKind]
    assert severe == sorted(severe, reverse=True)


def test_a_leak_is_an_alarm_of_its_pool() -> None:
    first, second = evaluate([], SWEPT, {"resourcepool.Proxy": 1, "testapp.Device": 2}, LIMITS, {})
    assert (first.kind, first.pool, second.pool) == (AlarmKind.LEAKED, "resourcepool.Proxy", "testapp.Device")
    assert str(first).startswith("resourcepool.Proxy: leases reported as leaked within the last hour: 1;")
    assert str(second).startswith("testapp.Device: leases reported as leaked within the last hour: 2;")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7_199, "120 min"), (7_199.9, "2 h"), (10**6, "12 d")],
)
def test_spans_are_told_in_the_unit_that_fits(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_of_this_database_now() -> None:
    new(Proxy, in_service=False, status=Status.OUT_OF_SERVICE)
    ticket(Proxy, asked_at=DbLater(-30))
    mine = [alarm.kind for alarm in alarms() if alarm.pool == "resourcepool.Proxy"]
    assert mine == [AlarmKind.NOTHING_IN_SERVICE]


class TestSomebodyWhoWaitsForLong:
    @staticmethod
    def alarm() -> Any:
        (found,) = [alarm for alarm in alarms() if alarm.pool == "resourcepool.Proxy"]
        return found

    def test_though_others_are_free_is_an_alarm_that_says_why(self) -> None:
        several(Proxy, 3, country="DE")
        ticket(Proxy, selector='{"country": "AQ"}', asked_at=DbLater(-600))
        found = self.alarm()
        assert (found.kind, found.is_severe) == (AlarmKind.STARVED, True)
        assert found.text == (
            "a waiter has waited 10 min although resources are free (3 free, 1 waiting). It wants country=AQ."
            " No resource matches its selectors."
        )

    def test_is_one_line_whatever_is_wanted(self) -> None:
        new(Proxy)
        ticket(Proxy, selector=json.dumps({"host": "a\nERROR all is lost\x1b[2J"}), asked_at=DbLater(-600))
        assert self.alarm().text.isprintable()

    def test_is_the_one_who_came_first_whatever_the_priority(self) -> None:
        new(Proxy, country="DE")
        hold(new(Proxy, country="US"))
        ticket(Proxy, selector='{"country": "US"}', asked_at=DbLater(-5), priority=-9)
        ticket(Proxy, selector='{"country": "AQ"}', asked_at=DbLater(-600))
        assert self.alarm().text.endswith("No resource matches its selectors.")

    def test_where_nothing_is_free_is_told_why_too(self) -> None:
        hold(new(Proxy, country="US"))
        ticket(Proxy, selector='{"country": "AQ"}', asked_at=DbLater(-600))
        found = self.alarm()
        assert found.kind is AlarmKind.EXHAUSTED
        assert found.text.endswith(
            f"waiters: 1, the first for 10 min. It wants country=AQ. No resource matches its selectors. {HOLDERS}"
        )

    def test_is_an_alarm_also_when_the_database_cannot_say_why(self, monkeypatch: pytest.MonkeyPatch) -> None:
        new(Proxy)
        ticket(Proxy, selector='{"country": "AQ"}', asked_at=DbLater(-600))
        monkeypatch.setattr(
            "resourcepool.status.alarms.Lines.longest",
            Mock(side_effect=DatabaseUnavailable("gone")),
        )
        found = self.alarm()
        assert (found.kind, found.text) == (
            AlarmKind.STARVED,
            "a waiter has waited 10 min although resources are free (1 free, 1 waiting).",
        )


def test_each_is_told_once_when_it_begins_and_once_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    told: list[tuple[str, str]] = []

    def begins(alarm: Any, **_: Any) -> None:
        told.append(("begins", alarm.pool))

    def ends(alarm: Any, **_: Any) -> None:
        told.append(("ends", alarm.pool))

    alarm_raised.connect(begins)
    alarm_cleared.connect(ends)
    sweep()
    told.clear()
    proxy = new(Proxy, in_service=False, status=Status.OUT_OF_SERVICE)
    waiter = ticket(Proxy)
    with caplog.at_level(logging.INFO, "resourcepool.alarms"):
        for _ in range(2):
            sweep()
        change(waiter, busy_before=DbLater(-1))
        for _ in range(2):
            sweep()
    assert told == [("begins", "resourcepool.Proxy"), ("ends", "resourcepool.Proxy")]
    lines = [message for message in caplog.messages if "resourcepool.Proxy" in message]
    assert len(lines) == 2
    assert lines[1] == f"cleared: {lines[0]}"
    assert proxy.pk


def test_the_log_is_in_english_whatever_the_language_of_the_process(caplog: pytest.LogCaptureFixture) -> None:
    Stream.objects.create(name="orders")
    task = Task.objects.create(stream_id="orders", key="1", type="t", submitted_at=DbNow())
    with caplog.at_level(logging.INFO, "resourcepool.alarms"), translation.override("zh-hans"):
        sweep()
        task.delete()
        sweep()
    begun, over = (line for line in caplog.text.splitlines() if "orders" in line)  # as they were when logged
    assert "stream: orders: " in begun
    assert "cleared: stream: orders: " in over

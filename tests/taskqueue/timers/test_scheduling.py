"""Timers are set, moved and cancelled; of a cancel and a handler exactly one wins, and the caller learns which."""

import datetime
import json
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from resourcepool.db.dialect import DbLater
from resourcepool.exceptions import BadOption
from resourcepool.models import Timer, Topic
from resourcepool.taskqueue import timers
from resourcepool.taskqueue.timers import Outcome, scheduling
from resourcepool.taskqueue.timers.models import TimerQuerySet
from tests.app.rows import change, expire, now
from tests.concurrency.connection_cutter import Interference
from tests.eventually import InBackground
from tests.resources.clients import LOST_CONNECTION
from tests.taskqueue.test_submit import isolation
from tests.taskqueue.timers.runners import timer

HOUR = datetime.timedelta(hours=1)
AWAY = {**LOST_CONNECTION, "sqlite": lambda: OperationalError("database is locked")}[connection.vendor]


def set_one(name: str = "a", **more: Any) -> timers.Scheduled:
    when = {"after": 3_600} if not {"after", "at", "every", "cron"} & set(more) else {}
    return timers.schedule(name, **{"topic": "t", **when, **more})


def begun(name: str = "a", **more: Any) -> Timer:
    """Let a handler have it."""
    found = timer(name)
    change(found, state="running", fence=found.fence + 1, holder="somebody", busy_before=DbLater(60), **more)
    return timer(name)


def test_a_timer_waits_for_its_moment_by_the_databases_clock() -> None:
    before = now()
    made = timers.schedule("order-42", after=HOUR, topic="order.timeout", payload={"order": 42, "名": "表"})
    assert made[:2] == ("order-42", "order.timeout")
    assert made.is_new
    assert before + HOUR <= made.due_at <= now() + HOUR
    row = timer("order-42")
    assert row.due_at == row.busy_before == made.due_at
    assert (row.state, row.topic_id, row.schedule, row.catch_up) == ("pending", "order.timeout", "", "once")
    assert json.loads(row.payload) == {"order": 42, "名": "表"}
    assert Topic.objects.get().name == "order.timeout"


def test_a_recurring_one_is_due_after_one_interval_or_from_its_start() -> None:
    before = now()
    made = set_one(every=60)
    assert before + datetime.timedelta(seconds=60) <= made.due_at <= now() + datetime.timedelta(seconds=60)
    start = timezone.now() + HOUR
    assert set_one("b", every=60, start=start, catch_up="all").due_at == start
    assert json.loads(timer("b").schedule) == {"every": 60.0}
    assert timer("b").catch_up == "all"


def test_a_shorthand_is_stored_as_the_crontab_that_it_stands_for() -> None:
    made = set_one(cron="@daily", tz="Asia/Shanghai")
    local = made.due_at.astimezone(ZoneInfo("Asia/Shanghai"))
    assert (local.hour, local.minute, local > timezone.now()) == (0, 0, True)
    assert json.loads(timer().schedule) == {"cron": "0 0 * * *", "tz": "Asia/Shanghai"}


def test_a_name_in_use_is_replaced_unless_the_caller_says_otherwise() -> None:
    first = set_one(payload={"v": 1})
    kept = set_one(after=1, payload={"v": 2}, if_exists="keep")
    assert kept == (*first[:3], False)
    with pytest.raises(
        BadOption, match="name='a' is not allowed: an unfinished timer of this topic has this name"
    ):
        set_one(if_exists="error")
    assert timer().payload == '{"v": 1}'
    fence = timer().fence
    replaced = set_one(after=1, payload={"v": 3})
    assert (replaced.is_new, timer().payload, timer().due_at) == (False, '{"v": 3}', replaced.due_at)
    assert timer().fence > fence


@pytest.mark.parametrize("if_exists", ["replace", "keep", "error"])
def test_the_name_of_one_that_is_over_is_free_again(if_exists: str) -> None:
    set_one(payload={"v": 1})
    change(
        timer(),
        state="done",
        finished_at=timezone.now(),
        attempts=3,
        failures=2,
        previous_end="expired",
        outcome="x",
    )
    fence = timer().fence
    assert set_one(if_exists=if_exists).is_new
    row = timer()
    assert (row.state, row.finished_at, row.attempts, row.failures, row.previous_end, row.outcome) == (
        *("pending", None, 0, 0, "", ""),
    )
    assert row.fence == fence + 1


def test_replacing_one_that_runs_takes_it_away_from_its_handler() -> None:
    set_one()
    fence = begun().fence
    set_one(after=5)
    assert (timer().state, timer().fence, timer().holder) == ("pending", fence + 1, "")


def test_the_same_name_may_be_used_in_each_topic() -> None:
    assert set_one(topic="t").is_new
    assert set_one(topic="u").is_new
    with pytest.raises(BadOption, match="one of t, u"):
        timers.cancel("a")
    assert timers.cancel("a", topic="u") is Outcome.CANCELLED
    assert timers.cancel("a") is Outcome.CANCELLED, "the other one is over"
    assert not Timer.objects.unfinished().exists()


def test_what_a_transaction_sets_and_cancels_counts_when_it_commits() -> None:
    set_one("there")
    with transaction.atomic():
        set_one("a")
        timers.cancel("there")
        transaction.set_rollback(True)
    assert list(Timer.objects.values_list("name", "state")) == [("there", "pending")]
    with transaction.atomic():
        set_one("a")
    assert timer().state == "pending"


@pytest.mark.only("mysql", "postgresql")
@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_topic_that_is_newer_than_the_snapshot_of_the_callers_transaction_is_used(level: str) -> None:
    with isolation(level), transaction.atomic():
        assert not Timer.objects.exists()  # its snapshot is made
        InBackground(lambda: Topic.objects.create(name="t")).result(30)
        assert set_one().is_new
    assert timer().state == "pending"


@pytest.mark.only("mysql")
def test_one_that_is_newer_than_the_snapshot_of_the_callers_transaction_is_replaced() -> None:
    Topic.objects.create(name="t")
    with isolation("REPEATABLE READ"), transaction.atomic():
        assert not Timer.objects.exists()  # its snapshot is made
        InBackground(lambda: set_one(payload={"v": 1})).result(30)
        assert not set_one(payload={"v": 2}).is_new
    assert timer().payload == '{"v": 2}'


def test_one_that_is_pending_is_cancelled_once_and_for_all() -> None:
    set_one()
    fence = timer().fence
    assert timers.cancel("a") is Outcome.CANCELLED
    assert timers.cancel("a") is Outcome.CANCELLED, "as after an answer that was lost"
    row = timer()
    assert (row.state, row.fence) == ("cancelled", fence + 1)
    assert row.finished_at is not None


def test_one_that_a_handler_has_is_not_cancelled_and_the_caller_is_told() -> None:
    set_one()
    row = begun()
    assert timers.cancel("a") is Outcome.RUNNING
    assert timers.reschedule("a", after=1) is Outcome.RUNNING
    assert (timer().state, timer().fence) == ("running", row.fence)


def test_a_recurring_one_that_runs_does_not_fire_again_after_a_cancel() -> None:
    set_one(every=60)
    row = begun()
    assert timers.reschedule("a", every=90) is Outcome.RUNNING
    assert timer().schedule
    assert timers.cancel("a") is Outcome.RUNNING
    assert timers.cancel("a") is Outcome.RUNNING
    assert (timer().schedule, timer().fence) == ("", row.fence)


def test_one_whose_handlers_process_has_died_is_nobodys_and_can_be_cancelled() -> None:
    set_one()
    expire(begun())
    assert timers.cancel("a") is Outcome.CANCELLED


def test_one_that_is_over_or_was_never_there_is_told_apart() -> None:
    set_one()
    change(timer(), state="done", finished_at=timezone.now())
    assert timers.cancel("a") is timers.reschedule("a", after=1) is Outcome.FIRED
    assert timers.cancel("b") is timers.reschedule("b", after=1) is Outcome.UNKNOWN
    set_one("c")
    timers.cancel("c")
    assert timers.reschedule("c", after=1) is Outcome.FIRED


def ended() -> None:
    change(timer(), state="done", finished_at=timezone.now(), busy_before=DbLater(-1), fence=9)


@pytest.mark.parametrize(
    ("handler", "outcome", "state"), [(begun, Outcome.RUNNING, "running"), (ended, Outcome.FIRED, "done")]
)
def test_a_cancel_and_a_handler_that_come_at_once_have_one_winner(
    handler: Any, outcome: Outcome, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_one()
    update, faster = TimerQuerySet.update, [handler]

    def after_the_handler(rows: Any, **changes: Any) -> int:
        if faster:
            faster.pop()()
        return update(rows, **changes)

    monkeypatch.setattr(TimerQuerySet, "update", after_the_handler)
    assert timers.cancel("a") is outcome
    assert timer().state == state


def test_a_pending_one_is_given_another_time_and_keeps_its_schedule() -> None:
    set_one(every=60)
    before = now()
    assert timers.reschedule("a", after=HOUR) is Outcome.RESCHEDULED
    assert before + HOUR <= timer().due_at == timer().busy_before <= now() + HOUR
    assert json.loads(timer().schedule) == {"every": 60.0}
    assert timers.reschedule("a", cron="0 0 * * *") is Outcome.RESCHEDULED
    assert json.loads(timer().schedule) == {"cron": "0 0 * * *", "tz": "UTC"}
    assert timers.reschedule("a", at=timezone.now() - HOUR, topic="t") is Outcome.RESCHEDULED
    assert timer().due_at < now()


NAIVE = datetime.datetime(2030, 1, 1)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("options", "about"),
    [
        ({"name": ""}, "name"),
        ({"name": 5}, "name"),
        ({"topic": "x" * 101}, "topic"),
        ({"after": -1}, "after"),
        ({"after": "soon"}, "after"),
        ({"after": 1, "start": NAIVE}, "start"),
        ({"after": None, "at": NAIVE}, "at"),
        ({"after": None, "every": 5, "start": NAIVE}, "start"),
        ({"after": None, "every": 0.1}, "every"),
        ({"after": None, "cron": "every day"}, "cron"),
        ({"after": None, "cron": "* * * * *", "tz": "Mars"}, "tz"),
        ({"payload": [1]}, "payload"),
        ({"payload": {"x": "y" * 70_000}}, "payload"),
        ({"catch_up": "sometimes"}, "catch_up"),
        ({"if_exists": "explode"}, "if_exists"),
    ],
)
def test_what_is_not_allowed_is_refused_by_name_and_nothing_is_set(options: dict[str, Any], about: str) -> None:
    given = {"name": "a", "topic": "t", "after": 5, **options}
    with pytest.raises(BadOption, match=rf"^{about}="):
        timers.schedule(given.pop("name"), **given)
    assert not Timer.objects.exists()
    assert not Topic.objects.exists()


@pytest.mark.parametrize("options", [{}, {"after": 1, "every": 5}, {"after": 0, "at": NAIVE, "cron": "@daily"}])
def test_without_a_time_or_with_several_none_is_shown_as_a_wrong_value(options: dict[str, Any]) -> None:
    with pytest.raises(BadOption) as refused:
        timers.schedule("a", topic="t", **options)
    assert str(refused.value) == "after: give exactly one of after, at, every and cron"
    assert not Timer.objects.exists()


def test_a_try_that_changed_nothing_is_not_taken_for_the_one_that_set_it() -> None:
    at, interference = timezone.now() + HOUR, Interference()
    set_one(at=at, payload={"v": 1})
    change(timer(), scheduled_at=DbLater(-1))
    with connection.execute_wrapper(interference):
        interference.expect("UPDATE", AWAY)
        assert not set_one(at=at, payload={"v": 2}).is_new
        assert (interference.raised, timer().payload) == (1, '{"v": 2}')
        change(timer(), scheduled_at=DbLater(-1))
        interference.expect("SELECT", AWAY, after=True)
        with pytest.raises(BadOption, match="an unfinished timer of this topic has this name"):
            set_one(at=at, if_exists="error")


@pytest.mark.parametrize("is_there", [False, True])
def test_one_that_was_set_by_a_try_whose_answer_was_lost_is_recognised(
    monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    at, put, errors = timezone.now() + HOUR, scheduling._put, [AWAY()]
    if is_there:
        set_one(at=at)

    def lose_the_answer(*given: Any) -> Any:
        done = put(*given)
        if errors:
            raise errors.pop()
        return done

    monkeypatch.setattr(scheduling, "_put", lose_the_answer)
    fence = timer().fence if is_there else None
    assert set_one(at=at, if_exists="replace" if is_there else "error") == ("a", "t", at, not is_there)
    assert fence is None or timer().fence == fence + 1

"""What operators do to topics and timers, whatever a node does meanwhile."""

import datetime
from typing import Any

import pytest
from django.utils import timezone

from resourcepool.models import Timer, Topic
from tests.app.rows import busy_for, change, expire, granted

pytestmark = pytest.mark.django_db


def timer(name: str = "a", due_in: float = 3600, **columns: Any) -> Timer:
    Topic.objects.get_or_create(name="order.timeout")
    moment = timezone.now() + datetime.timedelta(seconds=due_in)
    row: Timer = Timer.objects.create(
        name=name, topic_id="order.timeout", due_at=moment, busy_before=moment, **columns
    )
    return row


def running(name: str = "a", **columns: Any) -> Timer:
    row = timer(name, -1, **columns)
    granted(row, "web-1")
    change(row, state="running")
    return row


def now(row: Timer) -> Timer:
    found: Timer = Timer.objects.get(pk=row.pk)
    return found


def test_a_timer_that_is_fired_is_due_at_once_and_its_old_fence_is_worth_nothing() -> None:
    row = timer()
    fence = now(row).fence
    assert Timer.objects.all().fire("alice") == 1
    assert busy_for(row) <= 0
    assert now(row).fence == fence + 1
    assert now(row).due_at <= timezone.now() + datetime.timedelta(seconds=5)
    assert Timer.objects.all().fire("alice") == 0  # it is due


def test_firing_one_that_waits_to_be_tried_again_keeps_the_moment_that_it_was_due() -> None:
    row = timer(due_in=-600, failures=1)
    due_at = now(row).due_at
    change(row, busy_before=timezone.now() + datetime.timedelta(hours=1))
    assert Timer.objects.all().fire() == 1
    assert (now(row).due_at, busy_for(row) <= 0) == (due_at, True)


def test_what_runs_or_is_over_is_not_fired() -> None:
    running("a")
    timer("b", state="dead", finished_at=timezone.now())
    assert Timer.objects.all().fire() == 0


def test_a_cancelled_timer_does_not_fire_and_says_who_did_it() -> None:
    row = timer()
    fence = now(row).fence
    assert Timer.objects.all().cancel("alice") == 1
    row = now(row)
    assert (row.state, row.fence, row.holder, row.finished_at is not None) == ("cancelled", fence + 1, "", True)
    assert row.outcome == "cancelled by alice"
    assert not Timer.objects.due().exists()


def test_a_running_timer_is_not_cancelled_but_a_recurring_one_does_not_fire_again() -> None:
    once, again = running("once"), running("again", schedule='{"every": 60}')
    assert Timer.objects.cancellable().count() == 1
    assert Timer.objects.all().cancel() == 1
    for row in (once, again):
        assert (now(row).state, now(row).schedule, now(row).holder) == ("running", "", "web-1")


def test_filters_agree_with_the_states() -> None:
    timer("ahead")
    timer("due", -5)
    timer("late", -600)
    running("running")
    expire(running("left"))
    timer("done", -600, state="done", finished_at=timezone.now())

    def names(rows: Any) -> set[str]:
        return set(rows.values_list("name", flat=True))

    timers = Timer.objects.all()
    assert names(timers.unfinished()) == {"ahead", "due", "late", "running", "left"}
    assert names(timers.pending()) == {"ahead", "due", "late"}
    assert names(timers.waiting()) == {"ahead"}
    assert names(timers.due()) == {"due", "late", "left"}
    assert names(timers.late()) == {"late"}

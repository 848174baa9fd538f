"""The events of topics and timers in the history."""

from resourcepool.models import Timer
from resourcepool.taskqueue import timers
from tests.eventually import eventually
from tests.history.fixtures import events, history  # noqa: F401 (a fixture)
from tests.taskqueue.timers.runners import WITHIN, due, handling, over, states, timer, topic


def fails(_: timers.RunningTimer) -> None:
    raise ValueError("disk full")


def test_a_timer_that_is_given_up_is_told_with_its_error_but_not_its_retries() -> None:
    topic(retries=2, retry_delay=0)
    timers.on("t")(fails)
    due()
    with handling():
        over(1)
    assert events(Timer) == [("dead", "", "t/a: ValueError: disk full")]


def test_a_failed_firing_of_a_recurring_one_is_told_though_it_goes_on() -> None:
    timers.on("t")(fails)
    due(every=3600)
    with handling():
        eventually(lambda: timer().outcome, WITHIN)
    assert states() == {"a": "pending"}
    assert events(Timer) == [("failed", "", "t/a: ValueError: disk full")]


def test_what_ends_well_is_told_of_nowhere() -> None:
    timers.on("t")(lambda _: None)
    due()
    with handling():
        over(1)
    timers.schedule("b", topic="t", after=3600)
    timers.reschedule("b", topic="t", after=60)
    timers.cancel("b", topic="t")
    assert events(Timer) == []

"""A handler whose timer was lost, or whose lease expired while its process was suspended."""

import datetime
from typing import Any

import pytest
from django.db import OperationalError, transaction

from resourcepool.exceptions import LeaseLost
from resourcepool.taskqueue import timers
from resourcepool.taskqueue.timers import Outcome
from tests.app.rows import expire, now
from tests.eventually import eventually
from tests.taskqueue.consumers import Gate
from tests.taskqueue.timers.runners import WITHIN, due, handling, over, states, timer, topic


def write(one: Any) -> None:
    with transaction.atomic(), one.guard():
        topic("written")


def gone_away(one: Any) -> None:
    one.lease._lose("not renewed")
    raise OperationalError("the server has ended a session that stood still in a transaction")


def return_false(one: Any) -> bool:
    one.lease._lose("not renewed")
    return False


@pytest.mark.parametrize("end", [write, gone_away, return_false])
def test_a_handler_that_fails_after_its_lease_ran_out_has_not_failed_but_begins_again(end: Any) -> None:
    ran: list[Any] = []

    @timers.on("t")
    def stand_still(one: Any) -> Any:
        ran.append((one.attempt, one.previous_end))
        if one.attempt > 1:
            return write(one)
        expire(timer())  # as after a suspension, while no other node claimed it
        return end(one)

    due()
    with handling():
        over(1)
    assert ran == [(1, ""), (2, "expired")]
    assert (timer().state, timer().failures, timer().crashes) == ("done", 0, 1)


def test_a_handler_that_loses_a_lease_of_its_own_has_failed() -> None:
    @timers.on("t")
    def lose(one: Any) -> None:
        raise LeaseLost("that of a proxy")

    due()
    with handling():
        over(1)
    assert (timer().state, timer().outcome) == ("dead", "LeaseLost: that of a proxy")


# A node fires recurring timers again and again, missed occurrences included.


def test_a_recurring_one_is_due_again_from_its_due_moment(seen: list[Any]) -> None:
    made = due(every=60, ago=10)
    with handling():
        eventually(lambda: timer().due_at > made.due_at, WITHIN)
    assert len(seen) == 1
    row = timer()
    assert row.due_at == row.busy_before == made.due_at + datetime.timedelta(seconds=60)
    assert (row.state, row.attempts, row.previous_end, row.finished_at) == ("pending", 0, "", None)


@pytest.mark.parametrize(("catch_up", "fired"), [("once", [30]), ("all", [0] * 31), ("skip", [])])
def test_those_that_nobody_was_alive_for_are_caught_up(
    catch_up: str, fired: list[int], seen: list[Any]
) -> None:
    due(every=60, ago=30 * 60 + 5, catch_up=catch_up)
    with handling():
        eventually(lambda: timer().due_at > now() and timer().state == "pending", WITHIN)
    assert [one.missed for one in seen] == fired


def test_a_recurring_one_that_fails_for_good_goes_on_with_the_next_occurrence() -> None:
    timers.on("t")(lambda _: False)
    made = due(every=60)
    with handling():
        eventually(lambda: timer().due_at > made.due_at, WITHIN)
    assert (timer().state, timer().outcome) == ("pending", "the handler returned False")


def test_a_recurring_one_that_is_cancelled_while_it_runs_does_not_fire_again() -> None:
    gate = Gate()
    timers.on("t")(gate)
    due(every=86_400)
    with handling():
        assert gate.began.wait(WITHIN)
        assert timers.cancel("a") is Outcome.RUNNING
        gate.may_end.set()
        over(1)
    assert states() == {"a": "done"}

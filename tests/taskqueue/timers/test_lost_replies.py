"""A timer is set, or moved, and the answer is lost; meanwhile it fires, or another process cancels it."""

from typing import Any

import pytest
from django.utils import timezone

from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.models import Timer
from resourcepool.taskqueue import timers
from resourcepool.taskqueue.policy import Result
from resourcepool.taskqueue.timers import Outcome, claims, runner as due_timers
from tests.concurrency.connection_cutter import Wire
from tests.queues.members import COMMIT
from tests.taskqueue.timers.runners import due, states, timer, topic

pytestmark = pytest.mark.only("mysql", "postgresql")  # SQLite has no server that could answer


@pytest.fixture(autouse=True)
def _topic() -> None:
    topic()


def fire() -> None:
    """Handle due timers, as a node does."""
    rules, found = due_timers.read_topics("default", ["t"]), due_timers.read_due("default", ["t"], 100, 100)
    claimed, _ = claims.finish_and_claim("default", [], [one.pk for one in found], rules, "a node")
    claims.finish_and_claim("default", [(one, Result("")) for one in claimed], [], rules, "a node")


def row() -> dict[str, Any]:
    found: dict[str, Any] = Timer.objects.values().get()
    return found


def test_one_that_fires_before_its_setter_has_an_answer_fires_once(wire: Wire) -> None:
    wire.cut_after(COMMIT, meanwhile=fire)
    made = timers.schedule("a", topic="t", after=0)
    assert wire.cuts == 1
    assert (made.is_new, made.due_at) == (True, timer().due_at)
    assert (states(), timer().attempts) == ({"a": "done"}, 1)
    fire()
    assert timer().attempts == 1


def test_one_that_is_made_anew_under_the_name_of_a_former_one_fires_once_too(wire: Wire) -> None:
    due("a")
    fire()
    wire.cut_after("UPDATE", meanwhile=fire)
    assert timers.schedule("a", topic="t", after=0, if_exists="error").is_new
    assert wire.cuts == 1
    before = row()
    fire()
    assert row() == before
    assert before["state"] == "done"


def test_one_that_replaces_another_says_so_also_after_a_lost_answer(wire: Wire) -> None:
    timers.schedule("a", topic="t", after=60)
    wire.cut_after("UPDATE")
    assert not timers.schedule("a", topic="t", after=60).is_new
    assert wire.cuts == 1


def test_one_that_another_process_was_told_is_cancelled_does_not_fire(wire: Wire) -> None:
    told: list[Outcome] = []
    wire.cut_after(COMMIT, meanwhile=lambda: told.append(timers.cancel("a")))
    assert timers.schedule("a", topic="t", after=0).is_new
    assert (wire.cuts, told, states()) == (1, [Outcome.CANCELLED], {"a": "cancelled"})


def test_where_no_row_is_left_of_one_that_has_fired_its_setter_is_told_that_nobody_knows(wire: Wire) -> None:
    topic(done_kept=0)
    wire.cut_after(COMMIT, meanwhile=fire)
    with pytest.raises(DatabaseUnavailable, match="t/a may have been scheduled and have fired since"):
        timers.schedule("a", topic="t", after=0)
    assert (wire.cuts, states()) == (1, {})


def test_one_that_cannot_have_fired_yet_is_set_again(wire: Wire) -> None:
    topic(done_kept=0)
    wire.cut_after("INSERT")
    assert timers.schedule("a", topic="t", after=60).is_new
    assert (wire.cuts, states()) == (1, {"a": "pending"})


def test_one_that_is_moved_and_fires_before_its_mover_has_an_answer_was_moved_once(wire: Wire) -> None:
    timers.schedule("a", topic="t", every=3_600)
    wire.cut_after("UPDATE", meanwhile=fire)
    assert timers.reschedule("a", after=0) is Outcome.RESCHEDULED
    assert (wire.cuts, timer().state) == (1, "pending")
    assert timer().due_at > timezone.now()
    timers.schedule("b", topic="t", after=3_600)
    wire.cut_after("UPDATE", meanwhile=fire)
    assert timers.reschedule("b", after=0) is Outcome.RESCHEDULED, (
        "and not FIRED: it was this call that had it fire"
    )
    assert (wire.cuts, timer("b").state) == (2, "done")

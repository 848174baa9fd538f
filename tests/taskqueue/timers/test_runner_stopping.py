"""What a node does with timers in hand when it stops, or when one runs for too long."""

import threading
from typing import Any

import pytest
from django.db import transaction

from resourcepool.db import timeouts
from resourcepool.db.threads import Wakeup
from resourcepool.models import TimerNode
from resourcepool.taskqueue import timers
from resourcepool.taskqueue.running_task import GivenBack
from resourcepool.taskqueue.timers import TimerRunner, claims, nodes, runner as runners
from resourcepool.taskqueue.timers.handlers import find as handling_of
from resourcepool.taskqueue.worker_loop import WorkerLoop
from tests.eventually import eventually
from tests.taskqueue.consumers import Dying, Gate
from tests.taskqueue.timers.runners import WITHIN, due, handling, over, states, timer, topic


def test_a_handler_that_is_to_stop_may_give_its_timer_back() -> None:
    began = threading.Event()

    @timers.on("t")
    def run(one: Any) -> None:
        began.set()
        eventually(lambda: one.is_stopping, WITHIN)
        raise GivenBack

    due()
    with handling():
        assert began.wait(WITHIN)
    assert states() == {"a": "pending"}
    assert (timer().failures, timer().crashes, timer().previous_end) == (0, 0, "released")


def test_after_a_stop_nothing_is_begun() -> None:
    gate = Gate()
    timers.on("t")(gate)
    due("a", ago=2)
    due("b")
    with handling(threads=1) as runner:
        assert gate.began.wait(WITHIN)
        runner.stop()
        gate.may_end.set()
    assert states() == {"a": "done", "b": "pending"}
    assert timer("b").attempts == 0


def claimed_here() -> timers.RunningTimer:
    due()
    found = runners.read_due("default", ["t"], 1, 0)
    ((claimed,), _) = claims.finish_and_claim(
        "default", [], [one.pk for one in found], runners.read_topics("default", ["t"]), "this node"
    )
    return timers.RunningTimer("default", claimed, handling_of("t"))


@pytest.mark.parametrize(
    "happens",
    [
        timers.RunningTimer.stop,
        timers.RunningTimer.take_turn,
        lambda one: one.lease._lose("its process stood still"),
    ],
    ids=["its node stops", "its node gave it back", "its lease ran out"],
)
def test_what_happens_while_it_waits_for_a_thread_keeps_it_from_being_begun(
    happens: Any, seen: list[Any]
) -> None:
    one = claimed_here()
    happens(one)
    result = one.run()
    assert (result.is_given_back, one.has_begun, seen) == (True, False, [])
    claims.finish_and_claim("default", [(one.claimed, one.ended(result))], [], {}, "this node")
    assert (timer().state, timer().attempts, timer().crashes) == ("pending", 0, 0)
    one.lease._stop_renewing()


def test_a_timer_that_runs_for_too_long_has_failed_and_its_process_ends() -> None:
    gates = {"a": Gate(), "b": Gate()}
    timers.on("t", max_runtime=0.2)(gates["a"])
    timers.on("u")(gates["b"])
    due()
    due("b", topic="u")
    assert Dying(TimerRunner).said() == "timer t/a ran for more than 0.2 s"
    for gate in gates.values():
        gate.may_end.set()
    assert states() == {"a": "dead", "b": "pending"}
    assert timer().outcome == "it ran longer than its max_runtime of 0.2 s"
    assert timer("b").previous_end == "released"


def test_one_that_ran_for_too_long_because_its_process_stood_still_has_not_failed() -> None:
    gate = Gate()
    timers.on("t", max_runtime=0.2)(gate)
    due()
    dying = Dying(TimerRunner)
    assert gate.began.wait(WITHIN)
    gate.tasks[0].lease._lose("not renewed")
    assert dying.said() == "timer t/a ran for more than 0.2 s"
    gate.may_end.set()
    assert (timer().state, timer().failures) == ("running", 0), "it expires"


def test_a_timer_does_not_wait_for_a_slow_handler_while_another_node_has_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, ran = Gate(), []
    timers.on("slow")(gate)
    timers.on("t")(ran.append)
    topic("slow")  # known from the start
    with handling(threads=1):
        for number in range(20):  # so quick that several are claimed at once
            due(str(number))
        over(20)
        monkeypatch.setattr(runners, "SLOW_AFTER", 0.1)
        with transaction.atomic():
            due("slow", topic="slow", ago=2)
            due("quick")
        assert gate.began.wait(WITHIN)
        with handling(threads=1):
            over(21)
        assert (timer("quick").state, timer("quick").attempts, timer("quick").crashes) == ("done", 1, 0)
        gate.may_end.set()
        over(22)
    assert len(ran) == 21


def test_a_node_that_ends_does_not_wait_without_end_for_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float | None] = []
    monkeypatch.setattr(nodes.Node, "leave", lambda _node: limits.append(current_limit()))
    with handling():
        eventually(TimerNode.objects.exists, WITHIN)  # one that has not begun does not leave
    assert limits == [timeouts.STATEMENT_TIMEOUT]


def test_what_was_given_back_is_not_written_again_when_a_thread_comes_to_it(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    one = claimed_here()
    wakeup = Wakeup()
    worker = runners.TimerWorker("default", nodes.Node("default", {}, ""), 1, 1.0, wakeup)
    turns, in_hand = WorkerLoop("timers", worker, wakeup), worker.in_hand
    in_hand.attempts[one.pk] = one
    monkeypatch.setattr(runners, "SLOW_AFTER", -1.0)
    turns.run_once(may_begin=False)
    assert (timer().state, timer().holder, in_hand.attempts) == ("pending", "", {})
    in_hand._note_end(one, one.run())
    with django_assert_num_queries(0):
        turns.run_once(may_begin=False)


def current_limit() -> float:
    """Return how many seconds a statement of this thread may take."""
    return timeouts._limits.get()[0]

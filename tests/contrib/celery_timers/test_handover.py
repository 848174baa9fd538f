"""A node that hands over: each timer is reserved under a fence, and the process with that fence handles it."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction

from resourcepool.contrib.celery_timers import tasks as handover
from resourcepool.contrib.celery_timers.tasks import DispatchingRunner
from resourcepool.exceptions import ClaimInTransaction
from resourcepool.models import Timer, TimerNode, Topic
from resourcepool.taskqueue import timers
from tests.app.rows import expire
from tests.eventually import eventually
from tests.taskqueue.timers.runners import WITHIN, due, handling, states, timer, topic


class Carrier:
    """Records the messages; can be unavailable, from the start or after a number of messages."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, int, float | None]] = []
        self.is_away, self.breaks_after, self.asked = False, 10**6, 0

    @contextlib.contextmanager
    def __call__(self) -> Iterator[Any]:
        self.asked += 1
        if self.is_away:
            raise OSError("no broker")
        yield self.send

    def send(self, *message: Any) -> None:
        if len(self.sent) >= self.breaks_after:
            raise OSError("the broker has gone")
        self.sent.append(message)

    def wait(self, count: int = 1) -> None:
        eventually(lambda: len(self.sent) == count, WITHIN, lambda: self.sent)


@pytest.fixture
def carrier(monkeypatch: pytest.MonkeyPatch) -> Carrier:
    made = Carrier()
    monkeypatch.setattr(handover, "celery_sender", made)
    return made


@pytest.fixture
def seen() -> list[Any]:
    got: list[Any] = []

    @timers.on("t", max_runtime=50)
    def note(one: timers.RunningTimer) -> str:
        with transaction.atomic(), one.guard():
            got.append((one.name, one.attempt, one.previous_end))
        one.ensure_held()
        return "seen"

    return got


def handed_over(carrier: Carrier, count: int = 1) -> list[tuple[int, int]]:
    """Let a node hand over due timers; return the messages."""
    before = len(carrier.sent)
    with handling(DispatchingRunner):
        carrier.wait(before + count)
    return [(pk, fence) for pk, fence, _ in carrier.sent[before:]]


def test_who_has_the_fence_handles_it_once(carrier: Carrier, seen: list[Any]) -> None:
    due()
    ((pk, fence),) = handed_over(carrier)
    assert states() == {"a": "pending"}
    assert (handover.handle(pk, fence - 1), seen) == (None, [])
    assert handover.handle(pk, fence) == "timer t/a: handled in attempt 1"
    assert seen == [("a", 1, "")]
    assert (states(), timer().outcome) == ({"a": "done"}, '"seen"')
    assert handover.handle(pk, fence) is None
    assert len(seen) == 1


def test_a_claim_needs_the_fence_in_its_own_statement_too(carrier: Carrier, seen: list[Any]) -> None:
    due()
    ((pk, fence),) = handed_over(carrier)
    rule = Topic.objects.get()
    assert handover.claim_handed_over("default", pk, fence - 1, rule, "late") is None
    assert handover.claim_handed_over("default", pk, fence, rule, "mine") is not None
    assert handover.claim_handed_over("default", pk, fence + 1, rule, "another") is None
    again = handover.claim_handed_over("default", pk, fence, rule, "mine")  # its answer was lost
    assert again is not None
    assert (again.fence, again.attempt, timer().attempts) == (fence + 1, 1, 1)


def test_it_is_not_handed_over_twice_meanwhile_and_many_are_at_once(carrier: Carrier, seen: list[Any]) -> None:
    for number in range(200):
        due(f"n{number}")
    with handling(DispatchingRunner), handling(DispatchingRunner):
        carrier.wait(200)
        due("last")
        carrier.wait(201)
    assert len({pk for pk, _, _ in carrier.sent}) == 201
    assert {most for _, _, most in carrier.sent} == {50.0}


def test_what_nobody_takes_is_handed_over_again_and_the_first_message_is_too_late(
    carrier: Carrier, seen: list[Any]
) -> None:
    due()
    (first,) = handed_over(carrier)
    assert 50 < (timer().busy_before - timer().started_at).total_seconds() < 61
    expire(timer())
    (second,) = handed_over(carrier)
    assert handover.handle(*first) is None
    handover.handle(*second)
    assert seen == [("a", 1, "")]


def test_while_the_broker_is_away_nothing_is_changed(carrier: Carrier, seen: list[Any]) -> None:
    carrier.is_away = True
    due()
    before = Timer.objects.values().get()
    with handling(DispatchingRunner):
        eventually(lambda: carrier.asked > 1, WITHIN)
        assert Timer.objects.values().get() == before
        assert TimerNode.objects.exists()
        carrier.is_away = False
        carrier.wait()
    handover.handle(*carrier.sent[0][:2])
    assert states() == {"a": "done"}


def test_what_was_not_sent_when_the_broker_went_is_handed_over_again(carrier: Carrier, seen: list[Any]) -> None:
    carrier.breaks_after = 1
    due("a")
    due("b")
    ((pk, fence),) = handed_over(carrier)
    handover.handle(pk, fence)
    carrier.breaks_after = 2
    left = Timer.objects.get(finished_at=None)
    expire(left)
    (again,) = handed_over(carrier)
    handover.handle(*again)
    assert set(states().values()) == {"done"}


def test_since_when_nobody_takes_it_is_known_until_somebody_does(carrier: Carrier, seen: list[Any]) -> None:
    due()
    handed_over(carrier)
    first = timer().started_at
    for _ in range(2):
        expire(timer())
        (message,) = handed_over(carrier)
        assert (timer().started_at, Timer.objects.handed().count()) == (first, 1)
    handover.handle(*message)
    assert timer().started_at > first
    due()
    handed_over(carrier)
    assert timer().started_at > first
    timers.reschedule("a", after=60)
    assert Timer.objects.handed().count() == 0


def test_one_that_fails_after_its_lease_ran_out_is_handed_over_again_as_after_a_death(carrier: Carrier) -> None:
    @timers.on("t")
    def stand_still(one: Any) -> None:
        if one.attempt == 1:
            expire(timer())
            one.lease._lose("not renewed")
            raise ValueError("the server has gone away")

    due()
    for how in ("lost its lease in attempt 1", "handled in attempt 2"):
        (message,) = handed_over(carrier)
        assert handover.handle(*message) == f"timer t/a: {how}"
    assert (timer().state, timer().failures, timer().crashes) == ("done", 0, 1)


@pytest.mark.parametrize(
    "prevents",
    [
        lambda: timers.cancel("a"),
        lambda: timers.reschedule("a", after=60),
        due,
        lambda: topic(is_paused=True),
        lambda: topic(requires={"zone": "eu"}),
        lambda: topic(least_version="2"),
        lambda: Timer.objects.all().delete(),
        lambda: Timer.objects.all().discard(),
    ],
)
def test_what_has_changed_meanwhile_keeps_it_from_being_handled(
    prevents: Any, carrier: Carrier, seen: list[Any]
) -> None:
    due()
    (message,) = handed_over(carrier)
    prevents()
    before = list(Timer.objects.values())
    assert handover.handle(*message) is None
    assert (seen, list(Timer.objects.values())) == ([], before)


def test_a_worker_without_its_handler_leaves_it_alone(carrier: Carrier, seen: list[Any]) -> None:
    due()
    (message,) = handed_over(carrier)
    from resourcepool.taskqueue.timers.handlers import timer_registry

    del timer_registry.known["t"]
    assert handover.handle(*message) is None
    assert states() == {"a": "pending"}


def test_no_transaction_is_open_before_or_after(carrier: Carrier) -> None:
    @timers.on("t")
    def leave_open(_one: Any) -> None:
        transaction.set_autocommit(False)
        Timer.objects.exists()

    due()
    (message,) = handed_over(carrier)
    with transaction.atomic(), pytest.raises(ClaimInTransaction):
        handover.handle(*message)
    assert handover.handle(*message) == "timer t/a: failed in attempt 1"
    assert not connection.in_atomic_block
    assert states() == {"a": "dead"}


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_process_that_is_told_to_end_leaves_it_to_the_next_one_as_after_a_crash(
    carrier: Carrier, error: type[BaseException]
) -> None:
    @timers.on("u")
    def interrupted(one: Any) -> None:
        if one.attempt == 1:
            raise error

    due(topic="u")
    (message,) = handed_over(carrier)
    with pytest.raises(error):
        handover.run_timer(*message)
    assert states() == {"a": "running"}
    expire(timer())
    (message,) = handed_over(carrier)
    assert handover.run_timer(*message) == "timer u/a: handled in attempt 2"
    assert (timer().failures, timer().crashes) == (0, 1)

"""The handle of a queue: trusted no longer than it may be, in hand while work goes on, guarded to the commit."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.exceptions import DatabaseUnavailable, GuardOutsideTransaction, LeaseLost, LeaseReleased
from resourcepool.models import Server
from resourcepool.queues import operating
from resourcepool.queues.held import HeldQueue
from resourcepool.queues.membership import Membership
from tests.app.models import Team
from tests.app.rows import change
from tests.committed import Clock
from tests.concurrency.wire import Interference
from tests.eventually import eventually
from tests.queues.crew import (
    AWAY,
    NAME,
    asked_ago,
    dies,
    handles,
    joined,
    kind,
    made,
    queue,
    replan,
    stranger,
    table,
)

pytestmark = pytest.mark.usefixtures("transactional_db")


def one(**settings: Any) -> tuple[Membership, HeldQueue]:
    """Let A have the only queue."""
    made(1, **settings)
    a = joined("A")
    a.turn()
    return a, handles(a)["1"]


def ask(a: Membership) -> Server:
    """Have B ask for everything that A has; A does not know yet."""
    b = stranger("B")
    operating.drain(NAME, str(a))
    return b


def take_away(a: Membership) -> Server:
    """Have B take A's queue over; A does not know yet."""
    b = ask(a)
    asked_ago("1", 31)
    replan(if_due=True)
    assert table() == "B"
    return b


def pass_by(clock: Clock, a: Membership, seconds: float) -> None:
    """Let time go by in this process, while the heartbeat of A, on a connection of its own, goes on."""
    for _ in range(4):
        clock.advance(seconds / 4)
        began = clock()
        eventually(lambda began=began: a.lease.trust.sent_at >= began)


class TestGuard:
    def test_lets_work_commit_while_the_queue_is_this_servers(self) -> None:
        _, mine = one()
        with transaction.atomic(), mine.guard():
            Team.objects.create(name="done")
        assert Team.objects.count() == 1

    def test_of_a_late_owner_fails_and_its_work_is_undone(self) -> None:
        a, mine = one()
        take_away(a)
        assert mine.is_held  # it has not heard of it
        with pytest.raises(LeaseLost), transaction.atomic():
            Team.objects.create(name="too late")
            with mine.guard():
                pass
        assert Team.objects.count() == 0
        assert mine.lost.is_set()
        assert not mine.is_held

    def test_under_an_older_fence_fails_though_the_queue_is_this_servers_again(self) -> None:
        a, mine = one()
        b = take_away(a)
        Server.objects.filter(pk=a.lease.pk).update(state=Server.State.UP)
        dies(b)
        replan(if_due=True)
        assert table() == "A"
        with pytest.raises(LeaseLost), transaction.atomic(), mine.guard():
            pass

    def test_fails_when_the_server_counts_as_dead_though_nobody_has_planned_yet(self) -> None:
        a, mine = one()
        a.lease.let_go()  # or its own heartbeat would notice
        dies(row_of(a))
        assert mine.is_held
        with pytest.raises(LeaseLost), transaction.atomic(), mine.guard():
            pass

    def test_demands_a_transaction(self) -> None:
        _, mine = one()
        with pytest.raises(GuardOutsideTransaction), mine.guard():
            pass

    @pytest.mark.only("mysql", "postgresql")
    def test_holds_up_neither_the_heartbeat_nor_the_plans_of_others(self, other: BaseDatabaseWrapper) -> None:
        a, mine = one()
        b = ask(a)
        asked_ago("1", 31)
        with transaction.atomic(), mine.guard(), other.cursor() as cursor:
            cursor.execute(WAIT_NOT[connection.vendor])
            cursor.execute("UPDATE resourcepool_server SET holder = 'beats' WHERE id = %s", [a.lease.pk])
            assert cursor.rowcount == 1
            cursor.execute("UPDATE resourcepool_tasktype SET generation = generation")
        assert table() == "A>B"
        replan(if_due=True)
        assert table() == "B"
        assert b.pk

    @pytest.mark.only("mysql", "postgresql")
    def test_keeps_the_queue_from_being_taken_over_before_the_commit(self) -> None:
        from tests.eventually import InBackground

        a, mine = one()
        ask(a)
        asked_ago("1", 31)
        with transaction.atomic(), mine.guard():
            outcome = InBackground(lambda: replan(if_due=True)).result(30)
            assert len(outcome.left) == 1
            Team.objects.create(name="in time")
        assert table() == "A>B"
        assert Team.objects.count() == 1


WAIT_NOT = {"mysql": "SET innodb_lock_wait_timeout = 1", "postgresql": "SET lock_timeout = 1000"}


def row_of(a: Membership) -> Server:
    return Server.objects.get(pk=a.lease.pk)


class TestTrust:
    def test_ends_when_the_database_is_away_and_comes_back_with_it(self, process_clock: Clock) -> None:
        a, mine = one()
        interference = Interference()
        with connection.execute_wrapper(interference):
            interference.expect("", AWAY, times=1_000)
            with pytest.raises(DatabaseUnavailable):
                a.turn()
            assert mine.is_held  # shorter than the trust: nothing is lost
            pass_by(process_clock, a, 28)
            assert a.lease.is_held
            assert not mine.is_held
            with pytest.raises(LeaseLost):
                mine.ensure_held()
            with pytest.raises(LeaseLost), mine.working():
                pass
        a.turn()
        assert mine.is_held
        assert handles(a) == {"1": mine}
        assert not mine.lost.is_set()

    def test_ends_before_others_may_take_over_what_they_have_asked_for(self, process_clock: Clock) -> None:
        a, mine = one()
        ask(a)
        with mine.working():
            a.turn()
            assert mine.is_asked_for
            pass_by(process_clock, a, 20)
            a.turn()
            mine.ensure_held()
            pass_by(process_clock, a, 8)  # of 30 seconds; the last two are kept clear
            a.turn()
            assert not mine.is_held
            with pytest.raises(LeaseLost):
                mine.ensure_held()
            change(queue("1"), requested_at=None, req_server=None)
            mine.asked_until = math.inf  # for the end of the block
        assert mine.is_held

    def test_counts_what_has_passed_since_the_first_request(self, process_clock: Clock) -> None:
        a, mine = one(drain_within=60)
        ask(a)
        asked_ago("1", 50)
        with pytest.raises(LeaseLost), mine.working():
            a.turn()
            mine.ensure_held()
            process_clock.advance(8.1)
            a.turn()
        assert not mine.is_held

    def test_is_shortened_by_the_operator_from_then_on_and_not_behind_its_back(
        self, process_clock: Clock
    ) -> None:
        a, mine = one(drain_within=100)
        ask(a)
        with mine.working():
            asked_ago("1", 50)
            a.turn()
            shorter = kind()
            shorter.drain_within = 30
            shorter.save(update_fields=["drain_within"])
            replan(if_due=True)
            assert table() == "A>B", "it does not know yet"
            a.turn()
            pass_by(process_clock, a, 20)
            a.turn()
            mine.ensure_held()
            pass_by(process_clock, a, 8)
            a.turn()
            assert not mine.is_held
            mine.asked_until = math.inf  # for the end of the block

    def test_ends_with_the_heartbeat(self, process_clock: Clock) -> None:
        a, mine = one()
        a.lease.let_go()
        process_clock.advance(28)
        assert not mine.is_held
        assert not handles(a)


class TestWorking:
    def test_keeps_the_queue_from_being_handed_over_until_it_ends(self) -> None:
        a, mine = one()
        with mine.working():
            ask(a)
            a.turn()
            assert table() == "A>B"
            assert mine.should_stop
        a.turn()
        assert table() == "B"
        assert mine.lost.is_set()

    def test_may_be_nested(self) -> None:
        a, mine = one()
        with mine.working():
            with mine.working():
                ask(a)
                a.turn()
            a.turn()
            assert table() == "A>B"
            with mine.working():
                pass
        a.turn()
        assert table() == "B"

    def test_does_not_begin_on_what_is_asked_for(self) -> None:
        a, mine = one()
        ask(a)
        with mine.working():
            a.turn()
        with pytest.raises(LeaseReleased, match="asked for"), mine.working():
            pass

    def test_of_a_late_owner_fails_at_its_end(self) -> None:
        a, mine = one()
        with pytest.raises(LeaseLost), mine.working():
            take_away(a)
            a.turn()

    def test_of_a_late_owner_does_not_begin(self) -> None:
        a, mine = one()
        take_away(a)
        a.turn()
        with pytest.raises(LeaseLost), mine.working():
            pass

    def test_lets_the_error_of_the_work_through_and_ends(self) -> None:
        a, mine = one()
        with pytest.raises(ZeroDivisionError), mine.working():
            take_away(a)
            a.turn()
            raise ZeroDivisionError
        assert not mine.is_in_hand

    def test_that_ended_in_time_is_not_called_lost_because_the_queue_goes_at_once(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        a, mine = one()
        finish: Callable[..., None] = a.finish

        def finish_and_hand_over(which: HeldQueue) -> None:
            finish(which)
            a.turn()

        monkeypatch.setattr(a, "finish", finish_and_hand_over)
        with mine.working():
            ask(a)
            a.turn()
        assert table() == "B"

    def test_is_told_to_stop_when_paused_but_not_interrupted(self) -> None:
        a, mine = one()
        with mine.working():
            assert not mine.should_stop
            operating.pause(NAME)
            a.turn()
            assert mine.should_stop
            mine.ensure_held()
        operating.resume(NAME)
        a.turn()
        assert not mine.should_stop
        assert kind().is_paused is False


def test_a_handle_says_what_it_is() -> None:
    a, mine = one()
    assert (str(mine), repr(mine)) == ("queue 1, fence 1", "<HeldQueue 1 fence=1 held>")
    take_away(a)
    a.turn()
    assert repr(mine) == "<HeldQueue 1 fence=1 ended>"

"""The handle of a queue: how long it may be relied on, and when it is in hand."""

import math
from contextlib import nullcontext
from typing import Any

import pytest

from resourcepool.exceptions import DatabaseUnavailable, LeaseLost
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from resourcepool.queues.serving import membership
from resourcepool.queues.serving.membership import Membership
from tests.app.rows import change
from tests.committed import Clock
from tests.concurrency.connection_cutter import Interference
from tests.eventually import eventually
from tests.queues.members import (
    AWAY,
    owners,
    queue,
    read_queue_group,
    replan,
    request_all,
    requested_ago,
    single_queue,
    take_over,
)

pytestmark = pytest.mark.usefixtures("transactional_db")


def pass_by(clock: Clock, a: Membership, seconds: float) -> None:
    """Let time go by in this process, in which A takes its turns."""
    for _ in range(4):
        clock.advance(seconds / 4)
        a.turn()


class TestTrust:
    def test_ends_when_the_database_is_away_for_too_long(
        self, process_clock: Clock, interference: Interference
    ) -> None:
        a, mine = single_queue()
        interference.expect("", AWAY, times=1_000)
        with pytest.raises(DatabaseUnavailable):
            a.turn()
        process_clock.advance(16)
        mine.ensure_held()  # shorter than the trust: nothing is lost
        process_clock.advance(2.1)
        assert not mine.is_held
        with pytest.raises(LeaseLost):
            mine.ensure_held()
        with pytest.raises(LeaseLost), mine.working():
            pass
        eventually(mine.lost.is_set)

    def test_counts_from_when_the_renewal_was_sent(
        self, process_clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        a, mine = single_queue()
        look = membership.read_snapshot

        def look_for_long(*arguments: Any) -> Any:
            process_clock.advance(5)
            return look(*arguments)

        monkeypatch.setattr(membership, "read_snapshot", look_for_long)
        process_clock.advance(1)
        a.turn()
        process_clock.advance(11)
        mine.ensure_held()
        process_clock.advance(2.1)
        assert not mine.is_held

    @pytest.mark.parametrize("missing", ["look", "renewal"])
    def test_is_extended_only_by_a_renewal_and_a_look_together(
        self, process_clock: Clock, monkeypatch: pytest.MonkeyPatch, interference: Interference, missing: str
    ) -> None:
        a, mine = single_queue()
        if missing == "renewal":  # its row is locked
            monkeypatch.setattr(verbs, "renew_unless_locked", lambda *_: None)
        else:
            interference.expect("heartbeat_every", AWAY, times=1_000)
        with pytest.raises(DatabaseUnavailable) if missing == "look" else nullcontext():
            process_clock.advance(10)
            a.turn()
        process_clock.advance(8.1)
        assert not mine.is_held

    def test_ends_before_others_may_take_over_what_they_have_asked_for(self, process_clock: Clock) -> None:
        a, mine = single_queue()
        request_all(a)
        with mine.working():
            a.turn()
            assert mine.is_asked_for
            pass_by(process_clock, a, 20)
            mine.ensure_held()
            pass_by(process_clock, a, 8)  # of 30 seconds; the last two are kept clear
            assert not mine.is_held
            with pytest.raises(LeaseLost):
                mine.ensure_held()
            change(queue("1"), requested_at=None, req_server=None)
            mine.reliable_until = math.inf  # for the end of the block
        assert mine.is_held

    def test_counts_what_has_passed_since_the_first_request(self, process_clock: Clock) -> None:
        a, mine = single_queue(handover_timeout=60)
        request_all(a)
        requested_ago("1", 50)
        with pytest.raises(LeaseLost), mine.working():
            a.turn()
            mine.ensure_held()
            process_clock.advance(8.1)
            a.turn()
        assert not mine.is_held

    def test_is_shortened_by_the_operator_from_then_on_and_not_behind_its_back(
        self, process_clock: Clock
    ) -> None:
        a, mine = single_queue(handover_timeout=100)
        request_all(a)
        with mine.working():
            requested_ago("1", 50)
            a.turn()
            shorter = read_queue_group()
            shorter.handover_timeout = 30
            shorter.save(update_fields=["handover_timeout"])
            replan(if_due=True)
            assert owners() == "A>B", "it does not know yet"
            a.turn()
            pass_by(process_clock, a, 20)
            mine.ensure_held()
            pass_by(process_clock, a, 8)
            assert not mine.is_held
            mine.reliable_until = math.inf  # for the end of the block

    def test_is_prolonged_by_the_operator_also_for_an_owner_that_was_asked_before(self) -> None:
        a, mine = single_queue(handover_timeout=40)
        request_all(a)
        with mine.working():
            a.turn()
            before = mine.reliable_until
            longer = read_queue_group()
            longer.handover_timeout = 1_000
            longer.save()
            a.turn()
            assert mine.reliable_until - before > 900

    def test_and_the_heartbeat_end_when_nobody_takes_a_turn(self, process_clock: Clock) -> None:
        a, mine = single_queue()
        sent_at = a.lease._trust.sent_at
        process_clock.advance(16)
        keeper._renew_due_leases("default")
        assert a.lease._trust.sent_at == sent_at, "the keeper only watches it"
        process_clock.advance(2.1)
        eventually(lambda: not a.lease.is_held)
        eventually(mine.lost.is_set)


def test_a_handle_says_what_it_is() -> None:
    a, mine = single_queue()
    assert (str(mine), repr(mine)) == (
        f"queue 1, fence {mine.fence}",
        f"<HeldQueue 1 fence={mine.fence} held>",
    )
    take_over(a)
    a.turn()
    assert repr(mine) == f"<HeldQueue 1 fence={mine.fence} ended>"

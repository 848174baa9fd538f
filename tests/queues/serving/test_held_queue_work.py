"""Work on a queue: it keeps the queue from being handed over until it ends."""

from collections.abc import Callable

import pytest

from resourcepool.exceptions import LeaseLost, LeaseReleased, QueueBusy
from resourcepool.queues import administration
from resourcepool.queues.serving.held_queue import HeldQueue, WorkSlot
from tests.eventually import InBackground
from tests.queues.members import (
    NAME,
    owners,
    read_queue_group,
    request_all,
    single_queue,
    take_over,
)

pytestmark = pytest.mark.usefixtures("transactional_db")


class TestWorking:
    def test_keeps_the_queue_from_being_handed_over_until_it_ends(self) -> None:
        a, mine = single_queue()
        with mine.working():
            request_all(a)
            a.turn()
            assert owners() == "A>B"
            assert mine.should_stop
        a.turn()
        assert owners() == "B"
        assert mine.lost.is_set()

    def test_may_be_nested(self) -> None:
        a, mine = single_queue()
        with mine.working():
            with mine.working():
                request_all(a)
                a.turn()
            a.turn()
            assert owners() == "A>B"
            with mine.working():
                pass
        a.turn()
        assert owners() == "B"

    def test_does_not_begin_on_what_is_asked_for(self) -> None:
        a, mine = single_queue()
        request_all(a)
        with mine.working():
            a.turn()
        with pytest.raises(LeaseReleased, match="requested"), mine.working():
            pass

    def test_in_another_thread_does_not_begin_while_it_goes_on(self) -> None:
        _, mine = single_queue()
        with mine.working():
            with pytest.raises(QueueBusy, match="another thread"):
                InBackground(work_on, mine).result()
            assert mine.is_in_hand
        InBackground(work_on, mine).result()
        assert not mine.is_in_hand

    @pytest.mark.parametrize("why", ["is_paused", "is_stopping"])
    def test_does_not_begin_when_nobody_is_to_work_but_what_goes_on_may_go_into_parts(self, why: str) -> None:
        a, mine = single_queue()
        with mine.working():
            setattr(a, why, True)
            work_on(mine)
        with pytest.raises(QueueBusy, match="no work may begin"):
            work_on(mine)
        assert not mine.is_in_hand
        assert mine.is_held

    def test_that_ends_has_the_queue_handed_over_soon_and_not_before_the_pace_allows(self) -> None:
        a, mine = single_queue(heartbeat_every=9.0, reload_every=0.5)
        turns: list[float] = []
        a._due_at = turns.append
        work_on(mine)
        assert turns == [], "nobody waits for it"
        with mine.working():
            request_all(a)
            a.turn()
            work_on(mine)
            assert turns == [], "it is still in hand"
        assert a._snapshot is not None
        assert turns == [a._snapshot.sent_at + 0.5]

    def test_of_a_late_owner_fails_at_its_end(self) -> None:
        a, mine = single_queue()
        with pytest.raises(LeaseLost), mine.working():
            take_over(a)
            a.turn()

    def test_lets_the_error_of_the_work_through_and_ends(self) -> None:
        a, mine = single_queue()
        with pytest.raises(ZeroDivisionError), mine.working():
            take_over(a)
            a.turn()
            raise ZeroDivisionError
        assert not mine.is_in_hand

    def test_that_ended_in_time_is_not_called_lost_because_the_queue_goes_at_once(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        a, mine = single_queue()
        finish: Callable[..., None] = a.finish

        def finish_and_hand_over(which: HeldQueue, hand: WorkSlot) -> None:
            finish(which, hand)
            a.turn()

        monkeypatch.setattr(a, "finish", finish_and_hand_over)
        with mine.working():
            request_all(a)
            a.turn()
        assert owners() == "B"

    def test_is_told_to_stop_when_paused_but_not_interrupted(self) -> None:
        a, mine = single_queue()
        with mine.working():
            assert not mine.should_stop
            administration.pause(NAME)
            a.turn()
            assert mine.should_stop
            mine.ensure_held()
        administration.resume(NAME)
        a.turn()
        assert not mine.should_stop
        assert read_queue_group().is_paused is False


def work_on(queue: HeldQueue) -> None:
    with queue.working():
        pass

"""A semaphore: so many permits, of all processes; all that are wanted, or none."""

from typing import Any

import pytest

from resourcepool.db.sync_async import run_sync
from resourcepool.exceptions import AcquireTimeout, BadOption, LeaseLost, LeaseReleased, NotHeld
from resourcepool.locks import Semaphore
from resourcepool.models import SemaphorePermit
from tests.app.rows import steal
from tests.eventually import InBackground, eventually
from tests.locks.seats import held, in_line, permit
from tests.processes import forked


class TestHolding:
    def test_one_that_was_released_by_itself_keeps_none_of_the_others(self) -> None:
        seats = Semaphore("seats", 5)
        hold = held(seats, 3)
        hold.leases[1].release()
        with pytest.raises(LeaseReleased):
            hold.release()
        assert seats.available() == 5

    def test_a_block_gives_back_its_own(self) -> None:
        seats = Semaphore("seats", 3)
        with seats as outer, seats as hold:
            assert outer is not hold
            later = held(seats)
            assert seats.locked()
        assert not hold.is_held
        assert not seats.locked()
        assert later.is_held

    def test_it_says_who_holds_how_many(self) -> None:
        seats = Semaphore("seats", 5)
        assert seats.holders() == []
        two, one = held(seats, 2), held(seats)
        found = {holder.holder: (holder.permits, holder.fence) for holder in seats.holders()}
        assert found == {two.holder: (2, min(lease.fence for lease in two.leases)), one.holder: (1, one.fence)}
        assert len(seats.holders(limit=1)) == 1

    def test_before_its_first_use_all_are_free(self) -> None:
        seats = Semaphore("seats", 3)
        assert (seats.value, seats.available(), seats.holders()) == (3, 3, [])
        assert not SemaphorePermit.objects.exists()

    def test_the_loss_of_one_is_the_loss_of_all_of_them(self) -> None:
        heard: list[Any] = []
        hold: Any = Semaphore("seats", 2, on_lost=heard.append).acquire(n=2)
        steal(permit(1))
        with pytest.raises(LeaseLost):
            hold.leases[1].renew()
        eventually(lambda: heard == [hold])
        assert hold.lost.is_set()
        assert not hold.is_held


class TestWaiting:
    def test_who_wants_several_is_not_passed_for_ever(self) -> None:
        seats = Semaphore("seats", 2)
        one, two = held(seats), held(seats)
        both = InBackground(lambda: held(seats, 2))
        in_line(1)
        single = InBackground(lambda: held(seats))
        in_line(2)
        one.release()
        two.release()
        hold = both.result()
        assert len(hold.leases) == 2
        hold.release()
        assert single.result()

    def test_a_timeout_says_how_many_there_are(self) -> None:
        seats = Semaphore("seats", 3, timeout=0.05)
        hold = held(seats, 2)
        with pytest.raises(AcquireTimeout, match=r"2 of semaphore 'seats'.*it has 3 permits"):
            run_sync(seats._obtain, 0.05, 2)
        hold.release()
        eventually(lambda: seats.available() == 3)

    def test_who_gives_up_keeps_nothing(self) -> None:
        seats = Semaphore("seats", 3)
        hold = held(seats, 2)
        assert seats.acquire(timeout=0.1, n=3) is None
        hold.release()
        eventually(lambda: seats.available() == 3)


class TestBadInput:
    @pytest.mark.parametrize("value", [-1, 10_001, 1.0, "1", None, True])
    def test_a_bad_value_is_refused(self, value: Any) -> None:
        with pytest.raises(BadOption, match="value="):
            Semaphore("seats", value)

    @pytest.mark.parametrize("n", [0, -1, 1_001, 1.0, True])
    def test_a_bad_number_is_refused(self, n: Any) -> None:
        with pytest.raises(BadOption, match="n="):
            Semaphore("seats").acquire(n=n)
        with pytest.raises(BadOption, match="n="):
            Semaphore("seats").release(n)

    @pytest.mark.parametrize("wait", [{"blocking": False}, {"timeout": 30}, {"timeout": 0}])
    def test_more_than_there_are_is_refused_at_once(self, wait: dict[str, Any]) -> None:
        with pytest.raises(BadOption, match=r"n=3.*at most 2"):
            Semaphore("seats", 2).acquire(n=3, **wait)


def test_a_fork_holds_nothing_of_its_parent() -> None:
    seats = Semaphore("seats", 3)
    hold: Any = seats.acquire()

    def release() -> None:
        with pytest.raises(NotHeld):
            seats.release()

    assert forked(release)
    assert hold.is_held
    hold.release()

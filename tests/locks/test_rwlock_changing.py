"""Readers that become the writer, and writers that become readers, with nobody in between."""

from typing import Any

import pytest

from resourcepool.exceptions import LeaseLost, UpgradeConflict
from resourcepool.locks import Hold, RWLock, rwlock_sides as rwlock
from resourcepool.locks.rwlock_sides import RWHold
from resourcepool.models import RWLockPermit, Ticket
from tests.app.rows import expire, steal
from tests.eventually import InBackground, eventually
from tests.locks.readwrite import InBackgroundReader, can_read, can_write, lock, permits, tried_to_write


class TestDowngrading:
    def test_no_writer_that_waits_comes_between(self) -> None:
        """It gets what was given up, and not what is kept."""
        with lock().write() as held:
            waits = InBackground(lambda: tried_to_write(timeout=30))
            eventually(Ticket.objects.waiting().exists)
            lock().downgrade()
            assert held.is_held
            assert Ticket.objects.waiting().count() == 1
            assert permits().filter(holder=Ticket.objects.get().holder).count() == 2
        assert waits.result()

    def test_who_waits_to_read_comes_in_at_once(self) -> None:
        with lock().write():
            waits = InBackground(lock().read().acquire)
            eventually(Ticket.objects.waiting().exists)
            lock().downgrade()
            assert waits.result()

    def test_a_part_that_was_lost_is_noticed_before_anybody_else_says_so(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The release finds out; the background thread that tells of losses has not run yet."""
        monkeypatch.setattr(RWHold, "_note_loss", lambda *_: None)
        side = lock().write()
        held: Any = side.acquire()
        steal(permits().get(pk=held.leases[1].pk))
        with pytest.raises(LeaseLost):
            lock().downgrade()
        assert not held.is_held
        with pytest.raises(LeaseLost):
            side.release()


class TestUpgrading:
    def test_the_only_permit_is_enough(self) -> None:
        only = RWLock("catalogue", readers=1)
        with only.read():
            assert only.upgrade() is not None
            assert not can_read()
        with only.read():
            assert RWLock("catalogue", readers=7).upgrade() is not None
            assert not can_read()

    @pytest.mark.parametrize(("before", "now"), [(2, 1), (3, 2), (1, 3)])
    def test_a_name_that_was_made_again_has_another_number_of_permits(self, before: int, now: int) -> None:
        RWLock("again", readers=before).write().acquire().release()
        RWLockPermit.objects.all().delete()
        changed = RWLock("again", readers=now)
        with changed.read():
            held = changed.upgrade(blocking=False)
            assert held is not None
            assert len(held.leases) == RWLockPermit.objects.count() == now

    def test_it_waits_for_other_readers_and_for_no_new_ones(self) -> None:
        other = InBackgroundReader()
        with lock().read() as held:
            waits = InBackground(lambda: eventually(lambda: not can_read()) and other.release())
            assert lock().upgrade(timeout=30) is held
            waits.result()
        assert can_write()

    def test_who_does_not_wait_has_nothing_but_what_it_had(self) -> None:
        other = InBackgroundReader()
        with lock().read() as held:
            assert lock().upgrade(blocking=False) is None
            assert lock().upgrade(timeout=0.05) is None
            assert (held.is_held, len(held.leases)) == (True, 1)
            eventually(can_read)
        other.release()
        assert can_write()

    def test_a_second_one_is_told_at_once(self) -> None:
        def second() -> None:
            with lock().read():
                reads.append(True)
                eventually(Ticket.objects.waiting().exists)
                with pytest.raises(UpgradeConflict, match="another reader"):
                    lock().upgrade()

        reads: list[bool] = []
        other = InBackground(second)
        eventually(lambda: reads)
        with lock().read() as held:
            assert lock().upgrade(timeout=30) is held
        other.result()

    def test_the_intent_of_a_dead_one_expires(self) -> None:
        steal(RWLockPermit.objects.create(key="catalogue#upgrade", name=""))
        other = InBackgroundReader()
        with lock().read():
            with pytest.raises(UpgradeConflict):
                lock().upgrade(timeout=30)
            expire(RWLockPermit.objects.get(key="catalogue#upgrade"))
            assert lock().upgrade(timeout=0.05) is None
            other.release()
            assert lock().upgrade() is not None

    def test_a_writer_that_waits_and_has_collected_gives_back_what_is_needed(self) -> None:
        other = InBackgroundReader()
        with lock().read() as held:
            writes = InBackground(lambda: tried_to_write(timeout=60))
            eventually(lambda: not can_read())
            wants = InBackground(other.release)
            assert lock().upgrade(timeout=60) is held
            wants.result()
            assert Ticket.objects.waiting().count() == 1, "the writer still waits"
        assert writes.result()

    def test_with_two_permits_too(self) -> None:
        """Then the reader wants one row only, and the writer in line has to see to it."""
        two = RWLock("catalogue", readers=2)
        with two.read() as held:
            writes = InBackground(lambda: tried_to_write(timeout=60))
            eventually(lambda: not can_read())
            assert two.upgrade(timeout=60) is held
        assert writes.result()

    def test_nobody_in_line_is_given_the_row_of_the_intent(self) -> None:
        other = InBackgroundReader()
        with lock().read():

            def meanwhile() -> Any:
                eventually(Ticket.objects.waiting().filter(priority=rwlock.UPGRADE_PRIORITY).exists)
                eventually(lambda: not can_read())  # it has looked, and got the permit that was free
                reads = InBackground(lock().read().acquire)
                eventually(lambda: Ticket.objects.waiting().count() == 2)
                other.release()
                return reads

            then = InBackground(meanwhile)
            assert lock().upgrade(timeout=30) is not None
            reads = then.result()
            assert RWLockPermit.objects.get(key="catalogue#upgrade").holder == ""
            assert Ticket.objects.waiting().count() == 1
        assert reads.result()

    def test_who_has_lost_what_it_read_waits_no_longer_to_write(self) -> None:
        other = InBackgroundReader()
        with pytest.raises(LeaseLost), lock(ttl=1).read() as held:
            row = permits().get(pk=held.leases[0].pk)
            steals = InBackground(lambda: (eventually(Ticket.objects.waiting().exists), steal(row)))
            with pytest.raises(LeaseLost):
                lock().upgrade(timeout=20)
        steals.result()
        eventually(lambda: not Ticket.objects.waiting().exists())
        other.release()


class TestLosing:
    def test_who_has_lost_one_permit_has_lost_the_lock(self) -> None:
        heard: list[Hold] = []
        side = lock(on_lost=heard.append).write()
        held: Any = side.acquire()
        lost = held.leases[1]
        steal(permits().get(pk=lost.pk))
        with pytest.raises(LeaseLost):
            lost.renew()
        eventually(lambda: heard == [held])
        assert held.lost.is_set()
        assert (held.is_held, held.remaining) == (False, 0.0)
        assert not lock().write().owned()
        with pytest.raises(LeaseLost):
            held.ensure_held()
        with pytest.raises(LeaseLost):
            side.release()
        assert permits().held().count() == 1

"""A read-write lock: many read at once, or one writes; by threads, by tasks, again by its holder."""

import asyncio
from typing import Any

import pytest
from django.db import transaction

from resourcepool.exceptions import (
    AcquireTimeout,
    BadOption,
    LeaseLost,
    NotHeld,
    UpgradeConflict,
)
from resourcepool.locks import RWLock
from resourcepool.locks.rwlock_sides import RWPermits
from resourcepool.models import RWLockPermit, Ticket
from tests.app.rows import change, steal
from tests.eventually import InBackground, eventually
from tests.locks.readwrite import (
    can_read,
    can_write,
    elsewhere,
    lock,
    permits,
    tried_to_write,
)


class TestHolding:
    def test_several_read_at_once_up_to_the_limit(self) -> None:
        with lock().read():
            others = [elsewhere(lambda: lock().read().acquire(blocking=False)) for _ in range(3)]
        assert [one is not None for one in others] == [True, True, False]

    def test_what_acquire_returns_is_released_at_the_end_of_its_block(self) -> None:
        with lock().write().acquire() as held:  # type: ignore[union-attr]
            with lock().read().acquire():  # type: ignore[union-attr]
                pass
            assert held.is_writing
        assert can_write()
        with lock().read().acquire():  # type: ignore[union-attr]
            assert can_read()
        assert can_write()

    def test_nobody_writes_while_one_reads(self) -> None:
        with lock().read():
            assert not can_write()
            assert can_read()
        assert can_write()

    def test_nobody_reads_or_writes_while_one_writes(self) -> None:
        with lock().write() as held:
            assert held.is_held
            assert not can_write()
            assert not can_read()
        assert can_read()
        assert can_write()

    def test_the_fence_of_a_writer_is_above_that_of_all_before(self) -> None:
        with lock().write() as held:
            before = held.fence
        for row in permits():
            change(row, fence=row.fence + 1_000)
            with lock().write() as held:
                assert held.fence > max(before, row.fence + 1_000)
                before = held.fence

    def test_a_transaction_of_a_writer_commits_only_while_all_is_held(self) -> None:
        with pytest.raises(LeaseLost), lock().write() as held:
            with transaction.atomic(), held.guard():
                pass
            steal(permits().last())
            with transaction.atomic(), held.guard():
                pytest.fail("a part of it was lost")

    def test_it_tells_who_has_how_many_permits(self) -> None:
        with lock().read() as held:
            assert [one[:2] for one in lock().holders()] == [(held.holder, 1)]
        with lock().write() as held:
            assert [one[:2] for one in lock().holders()] == [(held.holder, 3)]
        assert lock().holders() == []

    def test_a_timeout_tells_who_has_it(self) -> None:
        with lock().read() as held:
            with pytest.raises(
                AcquireTimeout, match="read-write lock 'catalogue' did not become free"
            ) as error:
                elsewhere(lambda: lock(timeout=0.05).write().__enter__())
            assert held.holder in str(error.value)


class TestTakingItAgain:
    def test_reading_in_reading_and_writing_in_writing_count(self) -> None:
        for side in ("read", "write"):
            with getattr(lock(), side)() as outer:
                with getattr(lock(), side)() as inner:
                    assert inner is outer
                assert outer.is_held
                assert not can_write()
            assert can_write()

    def test_reading_while_a_writer_waits_does_not_wait_for_oneself(self) -> None:
        with lock().read() as held:
            waits = InBackground(lambda: tried_to_write(timeout=30))
            eventually(Ticket.objects.waiting().exists)
            with lock().read() as again:
                assert again is held
        assert waits.result()

    def test_who_writes_may_read(self) -> None:
        with lock().write() as held, lock().read() as again:
            assert again is held
            assert lock().read().owned()
        assert can_write()

    def test_who_ends_writing_and_still_reads_lets_readers_in_and_no_writer(self) -> None:
        writing, reading = lock().write(), lock().read()
        writing.acquire()
        reading.acquire()
        writing.release()
        assert can_read()
        assert not can_write()
        assert not lock().write().owned()
        reading.release()
        assert can_write()

    def test_who_reads_is_told_to_upgrade_at_once(self) -> None:
        with lock().read() as held:
            with pytest.raises(UpgradeConflict, match="upgrade"):
                lock().write().acquire()
            with pytest.raises(RuntimeError):
                lock().write().acquire(blocking=False)
            assert held.is_held
        assert can_write()

    def test_releasing_once_what_was_lost_leaves_the_error_to_the_last_release(self) -> None:
        reading = lock().read()
        held = reading.acquire()
        reading.acquire()
        assert held is not None
        held.leases[0]._lose("taken")
        reading.release()
        with pytest.raises(LeaseLost):
            reading.release()

    def test_another_thread_is_another_holder(self) -> None:
        with lock().write():
            assert not elsewhere(lambda: lock().write().owned())

    def test_taking_again_what_was_lost_says_so(self) -> None:
        reading = lock().read()
        held = reading.acquire()
        assert held is not None
        steal(permits().get(pk=held.leases[0].pk))
        with pytest.raises(LeaseLost):
            held.leases[0].renew()
        with pytest.raises(LeaseLost):
            reading.acquire()
        with pytest.raises(LeaseLost):
            reading.release()
        with pytest.raises(NotHeld):
            reading.release()


class TestReleasing:
    def test_what_was_acquired_to_read_is_not_released_as_a_writer_and_the_other_way_round(self) -> None:
        with lock().read(), pytest.raises(NotHeld):
            lock().write().release()
        with lock().write(), pytest.raises(NotHeld):
            lock().read().release()
        assert can_write()

    def test_in_a_transaction_it_takes_effect_at_the_commit(self) -> None:
        side = lock().write()
        side.acquire()
        with transaction.atomic():
            side.release()
        assert can_write()


class TestAsyncio:
    def test_tasks_read_and_write(self) -> None:
        async def work() -> None:
            one = lock()
            async with one.read() as held, one.read() as again:
                assert again is held
                assert await asyncio.create_task(one.write().aacquire(blocking=False)) is None
                assert await asyncio.create_task(one.read().aacquire(blocking=False)) is not None
            with pytest.raises(NotHeld, match="task"):
                await one.read().arelease()

        asyncio.run(work())

    def test_a_task_upgrades_and_downgrades(self) -> None:
        async def write() -> Any:
            async with lock().write() as held:
                return held

        async def work() -> None:
            one = lock()
            async with one.read() as held:
                assert await one.aupgrade() is held
                waits = asyncio.create_task(write())
                assert await one.adowngrade() is held
                assert len(held.leases) == 1
            assert await waits

        asyncio.run(work())

    def test_of_two_tasks_that_upgrade_one_has_it_and_the_other_is_told(self) -> None:
        async def upgrade(both: asyncio.Barrier) -> str:
            async with lock().read():
                await both.wait()
                try:
                    return "writes" if await lock().aupgrade(timeout=30) else "late"
                except UpgradeConflict:
                    return "told"

        async def work() -> list[str]:
            both = asyncio.Barrier(2)
            return sorted(await asyncio.gather(upgrade(both), upgrade(both)))

        assert asyncio.run(work()) == ["told", "writes"]


class TestBadInput:
    @pytest.mark.parametrize(
        ("option", "value"),
        [("readers", 0), ("readers", 101), ("readers", 2.5), ("readers", True), ("fair", 1)],
    )
    def test_a_bad_option_is_refused(self, option: str, value: Any) -> None:
        with pytest.raises(BadOption, match=f"{option}="):
            RWLock("catalogue", **{option: value})

    def test_the_longest_name_is_allowed(self) -> None:
        longest = RWLock("x" * 200, readers=100)
        with longest.read():
            assert longest.upgrade() is not None
            assert RWLockPermit.objects.filter(name="x" * 200).count() == 100


def test_who_finds_no_rows_at_all_holds_nothing_and_makes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    add, tries = RWPermits._add_missing, list[int]()

    def add_in_vain(self: RWPermits, connection: Any) -> bool:
        added = add(self, connection)
        tries.append(1)
        if len(tries) < 3:
            permits().delete()  # a database that is emptied at this moment
        return added

    monkeypatch.setattr(RWPermits, "_add_missing", add_in_vain)
    with lock().write() as held:
        assert len(held.leases) == 3
        assert held.is_held

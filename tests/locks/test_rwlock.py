"""A read-write lock: many read at once, or one writes; what no model of it says (``test_rwlock_any_order``)."""

import asyncio
from typing import Any

import pytest
from django.db import transaction

from resourcepool.exceptions import BadOption, LeaseLost, UpgradeConflict
from resourcepool.locks import RWLock
from resourcepool.locks.rwlock_sides import RWPermits
from resourcepool.models import RWLockPermit, Ticket
from tests.app.rows import change, steal
from tests.eventually import InBackground, eventually
from tests.locks.readwrite import lock, permits, tried_to_write


class TestHolding:
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


class TestTakingItAgain:
    def test_reading_while_a_writer_waits_does_not_wait_for_oneself(self) -> None:
        with lock().read() as held:
            waits = InBackground(lambda: tried_to_write(timeout=30))
            eventually(Ticket.objects.waiting().exists)
            with lock().read() as again:
                assert again is held
        assert waits.result()

    def test_who_reads_is_told_to_upgrade_at_once(self) -> None:
        with lock().read() as held:
            with pytest.raises(UpgradeConflict, match="upgrade") as refused:
                lock().write().acquire()
            assert isinstance(refused.value, RuntimeError)
            assert held.is_held


def test_a_task_upgrades_and_downgrades() -> None:
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


@pytest.mark.parametrize(
    ("option", "value"), [("readers", 0), ("readers", 101), ("readers", 2.5), ("readers", True), ("fair", 1)]
)
def test_a_bad_option_is_refused(option: str, value: Any) -> None:
    with pytest.raises(BadOption, match=f"{option}="):
        RWLock("catalogue", **{option: value})


def test_the_longest_name_is_allowed() -> None:
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

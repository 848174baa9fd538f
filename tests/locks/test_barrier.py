"""A barrier: all wait before it until it is removed."""

import asyncio
from typing import Any

import pytest
from django.db import transaction

from resourcepool.exceptions import BadOption, ClaimInTransaction
from resourcepool.locks import Barrier, Condition, barrier as barriers
from resourcepool.locks.bulk_release import remove_barriers
from resourcepool.models import Barrier as BarrierRow, ConditionWaiter, Ticket
from resourcepool.waiting import tickets
from tests.app.rows import busy_for
from tests.concurrency.connection_cutter import wired
from tests.eventually import InBackground, elsewhere, eventually
from tests.queues.members import COMMIT

NAME = "import done"


def in_line() -> int:
    return Ticket.objects.in_line_for(BarrierRow, NAME).waiting().count()


def nothing_is_held() -> bool:
    """Tell it once it is so: who sees only in line that it is gone has been notified, too, and gives that up."""
    return eventually(lambda: not BarrierRow.objects.held().exists())


def waiting(number: int = 1) -> list[InBackground]:
    before = in_line()
    started = [InBackground(Barrier(NAME).wait) for _ in range(number)]
    eventually(lambda: in_line() == before + number)
    return started


def test_all_who_wait_go_on_when_an_operator_removes_it() -> None:
    assert Barrier(NAME).create()
    threads = waiting(2)
    rows = BarrierRow.objects.filter(name=NAME)
    assert remove_barriers(rows, "its process has died", actor="maria") == 1
    assert [thread.result() for thread in threads] == [True] * 2
    assert remove_barriers(rows, "again") == 0


def test_a_condition_of_its_name_has_waiters_and_rows_of_its_own() -> None:
    assert Barrier(NAME).create()
    (thread,) = waiting()
    condition = Condition(name=NAME)
    with condition:
        assert condition.notify_all() == 0
    ConditionWaiter.objects.create(key=f"{NAME}#0", name=NAME)
    assert Barrier(NAME).remove()
    assert thread.result()
    assert ConditionWaiter.objects.filter(name=NAME).exists()


def test_where_there_is_none_nobody_waits() -> None:
    assert Barrier(NAME).wait() is True
    assert Barrier(NAME).wait(0) is True
    assert not Barrier(NAME).remove()
    assert not Ticket.objects.exists()


@pytest.mark.parametrize("stands", [True, False])
def test_nobody_waits_in_a_transaction_also_where_there_is_none(stands: bool) -> None:
    if stands:
        Barrier(NAME).create()
    with transaction.atomic(), pytest.raises(ClaimInTransaction):
        Barrier(NAME).wait(0)


def test_it_stands_longer_than_its_creator_lives() -> None:
    InBackground(Barrier(NAME).create).result()
    assert busy_for(BarrierRow.objects.get()) > 90 * 365 * 86_400
    assert Barrier(NAME).wait(0.05) is False
    assert in_line() == 0


def test_one_that_is_removed_between_the_look_and_the_place_in_line_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Barrier(NAME).create()
    take = tickets.take

    def removed_just_then(*given: Any, **more: Any) -> Any:
        monkeypatch.undo()
        InBackground(Barrier(NAME).remove).result()
        return take(*given, **more)

    monkeypatch.setattr(tickets, "take", removed_just_then)
    assert Barrier(NAME).wait() is True
    eventually(lambda: in_line() == 0)


@pytest.mark.only("mysql", "postgresql")
def test_who_gets_a_place_in_line_just_after_the_remover_looked_waits_for_its_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the lock on its row the waiter would still see the barrier, and nobody would wake it."""
    Barrier(NAME).create()
    started: list[InBackground] = []
    notify = barriers.notifications.notify

    def notify_then(*given: Any) -> int:
        count = notify(*given)
        started.append(InBackground(Barrier(NAME).wait))
        eventually(lambda: elsewhere(in_line) == 1)
        return count

    monkeypatch.setattr(barriers.notifications, "notify", notify_then)
    monkeypatch.setattr(Barrier, "_fence", _first_look_as_before(Barrier._fence))
    assert Barrier(NAME).remove()
    assert started[0].result() is True


def _first_look_as_before(look: Any) -> Any:
    fences = list(BarrierRow.objects.values_list("fence", flat=True))

    def fence(self: Barrier) -> int:
        return fences.pop() if fences else look(self)

    return fence


def test_the_next_one_of_its_name_does_not_hold_up_who_waited_before_the_first() -> None:
    Barrier(NAME).create()
    (thread,) = waiting()
    Barrier(NAME).remove()
    Barrier(NAME).create()
    assert thread.result() is True


def test_who_wakes_up_without_a_reason_goes_on_waiting() -> None:
    Barrier(NAME).create()
    (thread,) = waiting()
    Ticket.objects.in_line_for(BarrierRow, NAME).delete()
    eventually(lambda: in_line() == 1)
    assert thread.is_alive()
    Barrier(NAME).remove()
    assert thread.result() is True


@pytest.mark.only("mysql", "postgresql")  # SQLite has no server whose answer could be lost
def test_who_removed_it_is_told_so_also_if_the_answer_is_lost() -> None:
    with wired() as (wire, _):
        assert Barrier(NAME).create()
        wire.cut_after(COMMIT)
        assert Barrier(NAME).remove()
        assert wire.cuts == 1
        assert not Barrier(NAME).remove()


def test_in_asyncio() -> None:
    async def work() -> list[bool]:
        barrier = Barrier(NAME)
        done = [await barrier.acreate(), await barrier.await_(0.05)]
        waits = asyncio.create_task(Barrier(NAME).await_())
        await asyncio.sleep(0)
        done.append(await barrier.aremove())
        return [*done, await waits, await barrier.await_()]

    assert asyncio.run(work()) == [True, False, True, True, True]


@pytest.mark.parametrize("name", ["", "x" * 201, "two\nlines", 5, None])
def test_a_bad_name_is_refused(name: Any) -> None:
    with pytest.raises(BadOption, match="name="):
        Barrier(name)


def test_there_is_one_at_a_time() -> None:
    threads = [InBackground(Barrier(NAME).create) for _ in range(4)]
    assert sorted(thread.result() for thread in threads) == [False, False, False, True]
    assert Barrier("another").create()
    assert Barrier(NAME).remove()
    assert Barrier(NAME).create()

"""How many permits there are is changed while some are held, and some waited for."""

import logging
from typing import Any

import pytest
from django.db import connection, transaction

from resourcepool.exceptions import BadOption, RowLocked
from resourcepool.locks import Semaphore
from resourcepool.locks.bulk_release import resize_names
from resourcepool.models import SemaphorePermit
from tests.eventually import InBackground, eventually
from tests.locking import locked, wait_for_a_second_only
from tests.locks.seats import held, in_line, permit


def test_it_goes_with_autocommit_off_too() -> None:
    seats = Semaphore("seats", 1)
    assert seats.available() == 1
    transaction.set_autocommit(False)
    try:
        assert seats.resize(3) == 0
        connection.commit()
    finally:
        connection.rollback()
        transaction.set_autocommit(True)
    assert seats.value == 3


def test_up_serves_waiters_at_once() -> None:
    seats = Semaphore("seats", 1)
    held(seats)
    waits = [InBackground(seats.acquire) for _ in range(2)]
    in_line(2)
    assert seats.resize(3) == 0
    assert SemaphorePermit.objects.available().count() == 0  # when it returns, they have them
    assert all(one.result() for one in waits)
    assert seats.value == 3


def test_down_waits_for_holders() -> None:
    seats = Semaphore("seats", 3)
    holds = [held(seats) for _ in range(3)]
    assert seats.resize(1) == 2
    assert all(hold.is_held for hold in holds)
    for hold in holds:
        hold.leases[0].renew()
        hold.release()
    assert (seats.value, seats.available()) == (1, 1)


def test_up_again_takes_back_those_that_are_held() -> None:
    seats = Semaphore("seats", 4)
    holds = [held(seats) for _ in range(4)]
    assert seats.resize(1) == 3
    numbers = {int(hold.leases[0].pk[-1]): hold for hold in holds}
    # That with the lowest number, which would be taken back first if it did not matter who is held.
    numbers[min(number for number in numbers if not permit(number).in_service)].release()
    assert seats.resize(3) == 0
    assert seats.available() == 0


def test_to_none_and_back() -> None:
    seats = Semaphore("seats", 2)
    assert seats.resize(0) == 0
    assert (seats.value, seats.acquire(blocking=False)) == (0, None)
    waits = InBackground(seats.acquire)
    in_line()
    seats.resize(1)
    assert waits.result()


def test_what_waits_for_more_than_there_are_now_is_told() -> None:
    seats = Semaphore("seats", 3)
    hold = held(seats)
    waits = InBackground(lambda: seats.acquire(n=3))
    in_line()
    seats.resize(2)
    with pytest.raises(BadOption, match="n=3"):
        waits.result()
    hold.release()
    eventually(lambda: seats.available() == 2)


def test_it_stays_so_whatever_the_code_says(caplog: pytest.LogCaptureFixture) -> None:
    Semaphore("seats", 2).resize(4)
    with caplog.at_level(logging.WARNING, "resourcepool.locks"):
        for _ in range(3):
            Semaphore("seats", 3).acquire()
    assert [one.getMessage() for one in caplog.records] == [
        "<Semaphore 'seats'> has 4 permits in the database; value=3 is ignored, use resize()"
    ]
    assert Semaphore("seats", 9).value == 4


@pytest.mark.parametrize("n", [-1, 10_001, 1.5, True])
def test_a_bad_size_is_refused(n: Any) -> None:
    with pytest.raises(BadOption, match="n="):
        Semaphore("seats").resize(n)


@pytest.mark.only("mysql", "postgresql")  # on SQLite nobody else writes while a transaction is open
def test_of_several_names_those_that_are_locked_are_named_and_all_others_are_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wait_for_a_second_only(monkeypatch)
    for name in ("a", "b", "c"):
        held(Semaphore(name, 1))
    with (
        locked(SemaphorePermit.objects.get(name="b")),
        pytest.raises(RowLocked, match=r"1 locked .*: b") as error,
    ):
        resize_names(SemaphorePermit.objects.filter(name__in=["a", "b"]), 4, "more")
    assert error.value.done == 1
    with (
        locked(*SemaphorePermit.objects.filter(name__in=["b", "c"])),
        pytest.raises(RowLocked, match=r"2 locked .*: b, c"),
    ):
        resize_names(SemaphorePermit.objects.all(), 5, "more")
    assert [Semaphore(name).value for name in ("a", "b", "c")] == [5, 1, 1]

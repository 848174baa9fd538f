"""How many statements a semaphore costs."""

import pytest
from django.db import connection

from resourcepool.locks import Semaphore
from resourcepool.models import SemaphorePermit
from tests.committed import Statement


def sent(statements: list[Statement]) -> list[str]:
    """Return the first words of what this thread sent since the last call."""
    verbs = [one.sql.split("FOR ", 1)[-1].split()[0] for one in statements if one.thread == "MainThread"]
    statements.clear()
    return verbs


@pytest.fixture
def seats(statements: list[Statement]) -> Semaphore:
    connection.ensure_connection()
    _ = getattr(connection, "mysql_is_mariadb", None)  # asked once per connection
    seats = Semaphore("seats", 10)
    for _ in range(2):
        with seats:
            pass
    statements.clear()
    return seats


def test_two_for_an_acquire_and_a_release_again_and_again(
    seats: Semaphore, statements: list[Statement]
) -> None:
    for _ in range(3):
        with seats:
            assert sent(statements) == ["UPDATE"]
        assert sent(statements) == ["UPDATE"]


def test_one_more_when_this_process_has_released_none_just_now(
    seats: Semaphore, statements: list[Statement]
) -> None:
    with seats:
        sent(statements)
        other = seats.acquire()
        assert sent(statements) == ["SELECT", "UPDATE"]
        assert other is not None
        other.release()


def test_several_are_released_in_one(seats: Semaphore, statements: list[Statement]) -> None:
    hold = seats.acquire(n=5)
    assert hold is not None
    sent(statements)
    hold.release()
    assert sent(statements) == ["UPDATE"]


def test_reading_it_takes_one(seats: Semaphore, statements: list[Statement]) -> None:
    for read in (lambda: seats.value, seats.available, seats.holders):
        read()
        assert sent(statements) == ["SELECT"]


def test_the_rows_are_made_by_the_first_that_needs_them(statements: list[Statement]) -> None:
    Semaphore("chairs", 2).available()
    assert not SemaphorePermit.objects.filter(name="chairs").exists()
    sent(statements)
    Semaphore("chairs", 2).acquire()
    assert [word for word in sent(statements) if word in ("INSERT", "UPDATE", "SELECT")] == [
        *("SELECT", "SELECT", "SELECT"),  # how many there are, which are free, whether there are any
        *("INSERT", "SELECT", "UPDATE"),
    ]

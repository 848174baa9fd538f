"""How many statements semaphores, read-write locks and conditions cost."""

import re
from typing import Any

import pytest
from django.db import connection

from resourcepool.locks import Condition, Lock, RWLock, Semaphore
from resourcepool.models import ConditionWaiter, RWLockPermit, SemaphorePermit, Ticket
from tests.committed import Statement
from tests.eventually import InBackground, eventually


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
    hold: Any = seats.acquire(n=5)
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


def test_one_to_read_and_one_to_end_it_and_a_writer_reads_locks_takes_and_counts(
    statements: list[Statement],
) -> None:
    catalogue = RWLock("catalogue", readers=3)
    for side in (catalogue.read(), catalogue.write(), catalogue.read()):
        with side:
            pass
    reads, writes = catalogue.read(), catalogue.write()
    sent(statements)
    reads.acquire()
    assert len(sent(statements)) == 1
    reads.release()
    assert len(sent(statements)) == 1
    writes.acquire()
    ours = [one.sql.split()[0] for one in statements if RWLockPermit._meta.db_table in one.sql]
    assert ours == ["SELECT", "SELECT", "UPDATE", "SELECT"]
    sent(statements)
    writes.release()
    assert len(sent(statements)) == 1


def of_condition(statements: list[Statement]) -> list[str]:
    mine = [one.sql for one in statements if one.thread == "MainThread"]
    return [
        sql.split()[0] for sql in mine if Ticket._meta.db_table in sql or ConditionWaiter._meta.db_table in sql
    ]


def test_a_notification_of_nobody_is_one_statement(statements: list[Statement]) -> None:
    with Condition(Lock("orders", ttl=60)) as held:
        statements.clear()
        Condition(Lock("orders")).notify()
        Condition(Lock("orders")).notify_all()
        assert held.is_held
    assert of_condition(statements)[:2] == ["SELECT", "SELECT"]


def test_a_notification_of_several_is_four(statements: list[Statement]) -> None:
    condition = Condition(Lock("orders", ttl=60))

    def wait() -> None:
        with condition:
            condition.wait()

    threads = [InBackground(wait) for _ in range(3)]
    eventually(lambda: Ticket.objects.in_line_for(ConditionWaiter, "orders").waiting().count() == 3)
    with condition:
        statements.clear()
        condition.notify_all()
        sent = of_condition(statements)
    assert sent == ["SELECT", "SELECT", "INSERT", "UPDATE"]
    for thread in threads:
        thread.result()


def test_a_wait_is_a_ticket_besides_what_the_lock_takes(statements: list[Statement]) -> None:
    with Condition(Lock("orders", ttl=60)) as held:
        statements.clear()
        assert Condition(Lock("orders", ttl=60)).wait(0) is False
        changes = [one.sql for one in statements if one.thread == "MainThread" and "resourcepool_" in one.sql]
        assert held.is_held
    found = [re.search("INSERT INTO|UPDATE|DELETE", sql) for sql in changes if not sql.startswith("SELECT")]
    # Its ticket, the lock's release, its ticket, the lock.
    assert [one and one[0] for one in found] == ["INSERT INTO", "UPDATE", "DELETE", "UPDATE"]

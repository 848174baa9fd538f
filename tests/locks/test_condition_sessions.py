"""Of the threads that wait for a condition or a barrier only the one that looks for all of them has a session."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections

from resourcepool.locks import Condition, Lock
from resourcepool.models import Ticket
from tests.eventually import InBackground, eventually
from tests.spawned import Spawner
from tests.waiting.test_sessions import BACKGROUND, COUNT, ITS, asked

pytestmark = pytest.mark.only("mysql", "postgresql")
THREADS = 20


def sessions() -> int:
    return asked(COUNT[connection.vendor])


def waits_for_condition() -> bool:
    condition = Condition(Lock("orders"))
    with condition:
        return condition.wait(timeout=600)


def waiting(work: Callable[[], Any]) -> list[InBackground]:
    threads = [InBackground(work) for _ in range(THREADS)]
    eventually(lambda: Ticket.objects.waiting().count() == THREADS)
    return threads


def test_threads_that_wait_for_a_condition_occupy_no_session_and_none_while_they_wait_for_its_lock_again() -> (
    None
):
    before, condition = sessions(), Condition(Lock("orders"))
    threads = waiting(waits_for_condition)
    eventually(lambda: sessions() <= before + BACKGROUND)
    with condition:
        assert condition.notify_all() == THREADS
        eventually(lambda: Ticket.objects.waiting().count() == THREADS)  # now in line for the lock
        eventually(lambda: sessions() <= before + BACKGROUND)
    assert all(thread.result() for thread in threads)


def test_a_thread_that_used_the_database_before_it_took_the_lock_keeps_its_session() -> None:
    """It may have set something in it, or have a temporary table."""
    own: list[Any] = []

    def work() -> tuple[int, int]:
        before = asked(ITS[connection.vendor])
        assert waits_for_condition()
        return before, asked(ITS[connection.vendor])

    def work_without() -> bool:
        own.append(connections["default"])
        return waits_for_condition()

    thread = InBackground(work)
    eventually(lambda: Ticket.objects.waiting().count() == 1)  # it looks, for the other one, too
    other = InBackground(work_without)
    eventually(lambda: Ticket.objects.waiting().count() == 2)
    eventually(lambda: own[0].connection is None)  # by then the first one would have given up its own, too
    condition = Condition(Lock("orders"))
    with condition:
        condition.notify_all()
    before, after = thread.result()
    assert other.result()
    assert before == after


def wait_with_a_pool() -> None:
    pooled = {
        "CONN_MAX_AGE": 0,
        "OPTIONS": {**connection.settings_dict["OPTIONS"], "pool": {"min_size": 1, "max_size": 3}},
    }
    connections.settings["default"] |= pooled
    threads = [InBackground(waits_for_condition) for _ in range(6)]
    condition = Condition(Lock("orders"))
    eventually(lambda: Ticket.objects.waiting().filter(pool__contains="orders").count() == len(threads))
    with condition:
        assert condition.notify_all() == len(threads)
    assert all(thread.result() for thread in threads)
    print("fine", flush=True)


@pytest.mark.only("postgresql")
def test_six_threads_that_wait_need_no_more_than_three_sessions_of_djangos_pool(spawn: Spawner) -> None:
    spawn(wait_with_a_pool).line("fine")

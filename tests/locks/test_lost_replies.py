"""The server did what it was asked, and the answer got lost: callers are told what happened; nothing is done twice."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

from resourcepool.elections import Election
from resourcepool.elections.models import Election as ElectionRow
from resourcepool.locks import Channel, Condition, Lock, RWLock, Semaphore, release_all
from resourcepool.models import RWLockPermit, Ticket
from tests.app.models import Team
from tests.concurrency.connection_cutter import wired
from tests.eventually import InBackground, eventually
from tests.queues.members import COMMIT

pytestmark = pytest.mark.only("mysql", "postgresql")  # SQLite has no server that could answer

Losing = Callable[[], AbstractContextManager[None]]


@pytest.fixture(params=["UPDATE", "INSERT", "DELETE", COMMIT], ids=["update", "insert", "delete", "commit"])
def losing(request: pytest.FixtureRequest) -> Iterator[Losing]:
    """Lose the answer to the first such statement in a block, if there is one."""
    with wired() as (wire, _):
        Team.objects.count()  # connects

        @contextlib.contextmanager
        def losing() -> Iterator[None]:
            wire.cut_after(request.param)
            yield
            wire._relay._tricks.clear()

        yield losing


def test_a_lock(losing: Losing) -> None:
    for _ in range(2):  # first without a row
        with losing():
            held = Lock("report").acquire(timeout=20)
        assert held
        assert held.is_held
        with losing():
            Lock("report").release()
        assert not Lock("report").locked()


def test_permits(losing: Losing) -> None:
    seats = Semaphore("seats", 5)
    with losing():
        hold = seats.acquire(n=3)
    assert hold
    assert len(hold.leases) == 3
    with losing():
        assert seats.resize(2) == 1
    assert (seats.value, seats.available()) == (2, 0)
    with losing():
        hold.release()
    assert seats.available() == 2


def test_a_writer_and_a_reader_of_one_lock(losing: Losing) -> None:
    lock, held = RWLock("book", readers=3), RWLockPermit.objects.filter(name="book").held()
    with losing():
        assert lock.write().acquire(timeout=20)
    with losing():
        lock.downgrade()
    assert held.count() == 1
    with losing():
        assert lock.upgrade(timeout=20)
    assert held.count() == 3
    with losing():
        lock.write().release()
    assert not held.exists()


def test_notifications(losing: Losing) -> None:
    changed = Condition(Lock("orders"))

    def waits() -> bool:
        with changed:
            return changed.wait(60)

    waiters = [InBackground(waits) for _ in range(3)]
    line: Any = Ticket.objects.waiting().filter(pool__contains="conditionwaiter")
    eventually(lambda: line.count() == 3)
    with changed:
        with losing():
            assert changed.notify(2) == 2
        assert line.count() == 1
        assert changed.notify_all() == 1
    assert all(waiter.result() for waiter in waiters)


def test_messages(losing: Losing) -> None:
    with losing():
        messages = Channel("news").subscribe("reader", from_="start", timeout=0)
    with losing():
        assert Channel("news").publish_many([1, 2]) == range(1, 3)
    read = []
    for message in messages:
        read.append(message.payload)
        with losing():
            message.done()
    with losing():
        messages.close()
    assert read == [1, 2]
    with Channel("news").subscribe("reader", timeout=0) as messages:
        assert list(messages) == []


def test_a_term(losing: Losing) -> None:
    with losing():
        term = Election("reports", lock_delay=0.1).campaign(20)
    assert term.is_leader
    with losing():
        term.resign()
    assert ElectionRow.objects.get().resigned_term == term.fence


def test_all_that_a_process_holds(losing: Losing) -> None:
    Lock("report").acquire()
    Semaphore("seats", 3).acquire(n=2)
    with losing():
        assert release_all() == 3
    assert (Lock("report").locked(), Semaphore("seats").available()) == (False, 3)

"""A process that cannot start a thread raises an error, and keeps no undelivered lease."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from resourcepool.db.background import background_thread
from resourcepool.db.threads import Daemon
from resourcepool.history.recorder import recorder
from resourcepool.leases.keeper import keeper
from resourcepool.models import Event, Proxy, Ticket
from resourcepool.signals import EventKind, RowEvent
from resourcepool.waiting import turn
from resourcepool.waiting.poll import poller_on
from tests.app.rows import busy_for, columns, hold, several
from tests.committed import Statement
from tests.eventually import InBackground, eventually

REFUSED = "can't start new thread"


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Stop these background threads, and prevent their start."""
    ensure_started = Daemon.ensure_started

    def have(*names: str) -> None:
        def refuse(daemon: Daemon) -> None:
            if daemon._name in names:
                raise RuntimeError(REFUSED)
            ensure_started(daemon)

        monkeypatch.setattr(Daemon, "ensure_started", refuse)
        waiters = poller_on("default")._for_tasks.owner
        daemons = keeper._watcher, background_thread("default").daemon, waiters.daemon
        for daemon in daemons:
            if daemon._name in names:
                monkeypatch.setattr(daemon, "is_running", False)

    return have


@pytest.fixture
def rows() -> list[Any]:
    return several(Proxy, 2)


def assert_free(rows: list[Any]) -> None:
    for row in rows:
        assert (columns(row)["holder"], busy_for(row) <= 0) == ("", True)
    assert keeper.leases() == []


@pytest.mark.parametrize("criteria", [{"timeout": 5}, {"wait": False}], ids=["waiting", "not waiting"])
@pytest.mark.parametrize("count", [1, 2])
def test_what_nobody_would_renew_is_given_back(
    no_threads: Any, rows: list[Any], count: int, criteria: dict[str, Any]
) -> None:
    no_threads("background-default")
    with pytest.raises(RuntimeError, match=REFUSED):
        Proxy.pool.acquire_many(count, **criteria)
    assert_free(rows)


def test_what_is_taken_up_too(no_threads: Any, rows: list[Any]) -> None:
    lease: Any = Proxy.pool.acquire()
    fence = lease.hand_over("heir")
    no_threads("watch")
    with pytest.raises(RuntimeError, match=REFUSED):
        Proxy.pool.adopt(lease.pk, fence)
    assert_free(rows)


def test_what_a_waiter_is_given_is_given_back_and_the_waiter_is_told(
    no_threads: Any, rows: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "USED_BATCH", 1)  # its ticket is removed at once
    held = [hold(row) for row in rows]
    waiting = InBackground(lambda: Proxy.pool.acquire_many(2, timeout=20))
    eventually(Ticket.objects.exists)
    no_threads("background-default")
    for lease in held:
        lease.release()
    with pytest.raises(RuntimeError, match=REFUSED):
        waiting.result()
    eventually(lambda: not Ticket.objects.exists())
    assert_free(rows)


@pytest.mark.parametrize("count", [1, 2])
def test_a_task_that_nobody_would_look_for_takes_no_ticket(
    no_threads: Any, rows: list[Any], count: int, statements: list[Statement]
) -> None:
    held = [hold(row) for row in rows]
    no_threads("waiters-default")
    with pytest.raises(RuntimeError, match=REFUSED):
        asyncio.run(Proxy.pool.aacquire_many(count, timeout=20))
    assert not [one.sql for one in statements if one.sql.startswith("INSERT")]
    for lease in held:
        lease.release()
    assert_free(rows)


def test_what_is_to_be_written_down_waits(no_threads: Any, settings: Any) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY": True}
    no_threads("background-default")
    recorder.note(RowEvent(EventKind.EXPIRED, Proxy, "default", 1))
    assert not recorder.is_idle
    recorder.flush()
    assert Event.objects.exists()

"""A process that is paused for longer than its ttl: overload, a suspended container, a long garbage collection."""

import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from django.db import transaction

from resourcepool.exceptions import LeaseLost
from resourcepool.models import Proxy
from tests.app.models import Team
from tests.app.rows import busy_for, columns, new, several
from tests.eventually import eventually
from tests.spawned import Spawner

TTL = 1.0


def stop() -> None:
    """Stop this process in this thread; a signal to the process might reach another thread first."""
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def guard(lease: Any) -> None:
    with transaction.atomic(), lease.guard():
        Team.objects.create(name="written too late")


FIRST_CALLS: dict[str, Callable[[Any], object]] = {
    "ensure_held": lambda lease: lease.ensure_held(),
    "renew": lambda lease: lease.renew(),
    "guard": guard,
    "release": lambda lease: lease.release(),
    "quarantine": lambda lease: lease.quarantine("found bad too late"),
    "fix": lambda lease: lease.fix("found bad too late"),
    "hand_over": lambda lease: lease.hand_over("somebody else"),
}


def sleep_on_leases() -> None:
    leases = Proxy.pool.acquire_many(len(FIRST_CALLS), ttl=TTL)
    print("held", flush=True)
    stop()
    told = []
    for lease, (name, call) in zip(leases, FIRST_CALLS.items(), strict=True):
        try:
            call(lease)
        except LeaseLost:
            told.append(name)
            assert lease.lost.wait(60)
            assert not lease.is_held
    print(f"told by {' '.join(told)}", flush=True)


def test_after_a_pause_the_first_call_reports_the_loss(spawn: Spawner) -> None:
    rows = several(Proxy, len(FIRST_CALLS))
    child = spawn(sleep_on_leases)
    child.line("held")
    leases = Proxy.pool.acquire_many(len(rows), timeout=30)
    assert leases
    before = [columns(row) for row in rows]
    child.send(signal.SIGCONT)
    assert f"told by {' '.join(FIRST_CALLS)}" in child.succeed()
    assert Team.objects.count() == 0
    after = [columns(row) for row in rows]
    for now, then in zip(after, before, strict=True):
        # The keeper of this process may have renewed its leases; nothing else may have changed.
        assert {**now, "busy_before": None} == {**then, "busy_before": None}
        assert now["busy_before"] >= then["busy_before"]
    for lease in leases:
        lease.ensure_held()
        lease.release()


def stop_in_a_transaction(where: str) -> None:
    lease = Proxy.pool.acquire(ttl=TTL)
    with transaction.atomic(), ExitStack() as stack:
        Team.objects.create(name="written by the one that was stopped")
        if where == "after guard":
            stack.enter_context(lease.guard())
        print("inside", flush=True)
        stop()
        if where == "before guard":
            stack.enter_context(lease.guard())
    print("committed", flush=True)


# On SQLite an open transaction keeps every other process from writing, so there is no successor to disturb.
@pytest.mark.only("mysql", "postgresql")
def test_work_paused_before_guard_is_rolled_back(spawn: Spawner) -> None:
    row = new(Proxy)
    child = spawn(stop_in_a_transaction, "before guard")
    child.line("inside")
    successor = Proxy.pool.acquire(timeout=30)
    assert successor
    child.send(signal.SIGCONT)
    assert child.wait() == 1
    assert "LeaseLost" in child.output
    assert Team.objects.count() == 0
    successor.release()
    assert columns(row)["fence"] == successor.fence + 1


@pytest.mark.only("mysql", "postgresql")
def test_work_paused_inside_guard_commits_because_the_row_is_locked(spawn: Spawner) -> None:
    row = new(Proxy)
    child = spawn(stop_in_a_transaction, "after guard")
    child.line("inside")
    eventually(lambda: busy_for(row) <= 0)
    assert Proxy.pool.acquire(wait=False) is None, "the child keeps it locked until it goes on"
    child.send(signal.SIGCONT)
    child.line("committed")
    assert Team.objects.count() == 1
    successor = Proxy.pool.acquire(timeout=30)
    assert successor
    assert successor.fence > 1

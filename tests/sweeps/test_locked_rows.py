"""Sweeps while rows are locked, above all by a holder that is paused inside ``guard``."""

import signal
import threading
from typing import Any

import pytest
from django.db import transaction

from resourcepool.db.dialect import DbLater
from resourcepool.models import Event, Proxy
from resourcepool.resources.state import Status
from resourcepool.sweeps import pruning
from resourcepool.sweeps.sweep import prune, sweep
from tests.app.rows import columns, expire, granted, new, several
from tests.eventually import InBackground, eventually
from tests.locking import locked
from tests.spawned import Child, Spawner

pytestmark = pytest.mark.only("mysql", "postgresql")  # on SQLite one locks the whole database


def guard_and_stop() -> None:
    """Start guarded work on the only free resource, and pause inside it until the lease has expired."""
    lease: Any = Proxy.pool.acquire(ttl=1, timeout=10)
    with transaction.atomic(), lease.guard():
        print("stops", flush=True)
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


@pytest.fixture
def stopped(spawn: Spawner) -> Child:
    child = spawn(guard_and_stop)
    child.line("stops")
    return child


def held() -> set[str]:
    return set(Proxy.objects.exclude(holder="").values_list("host", flat=True))


class TestAHolderThatIsPausedInGuard:
    def test_does_not_block_the_sweep_of_other_rows_or_the_next_sweep(self, spawn: Spawner) -> None:
        stuck = new(Proxy, host="stuck.example")
        child = spawn(guard_and_stop)
        child.line("stops")
        others = several(Proxy, 3)
        for row in others:
            granted(row)
            expire(row)
        eventually(lambda: Proxy.objects.expired().filter(pk=stuck.pk).exists())
        swept = InBackground(sweep)
        assert "3 leases expired" in swept.result(20)
        assert held() == {"stuck.example"}
        assert "0 leases expired" in InBackground(sweep).result(20), "and not: being done elsewhere"
        child.kill()
        eventually(lambda: "1 lease expired" in (sweep() or ""))
        assert held() == set()

    def test_does_not_block_the_return_of_other_rows_to_service(self, spawn: Spawner) -> None:
        away = {"in_service": False, "status": Status.OUT_OF_SERVICE, "until": DbLater(-1)}
        back, stuck = new(Proxy, **away), new(Proxy, host="stuck.example", **away)
        with locked(stuck):
            assert "1 returned to service" in InBackground(sweep).result(20)
        assert columns(back)["in_service"]
        assert not columns(stuck)["in_service"]


def test_locked_history_is_removed_in_the_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "BATCH", 2)
    common = {"at": "2000-01-01T00:00:00Z", "what": "acquired", "pool": "p", "row": "1"}
    events = [Event.objects.create(**common) for _ in range(5)]
    with locked(events[0]):
        assert InBackground(prune).result(20) == "4 removed"
        assert InBackground(prune).result(20) == "0 removed"
    assert prune() == "1 removed"

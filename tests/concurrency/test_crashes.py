"""Real processes that are killed while they hold leases: never two on one row, and no row is lost."""

import random
import time
from pathlib import Path
from typing import Any

from resourcepool.exceptions import LeaseLost
from resourcepool.models import Proxy
from tests.app.rows import several
from tests.concurrency.evidence import Log
from tests.concurrency.judge import Verdict, judge
from tests.concurrency.tickets import lapse_after
from tests.eventually import eventually
from tests.spawned import Child, Spawner

PROCESSES, ROWS, KILLS = 8, 4, 5
TTL = 1.0


def work(folder: str) -> None:
    """Acquire, use and release, with and without waiting, until the test ends it."""
    log, stop = Log(Path(folder, "log")), Path(folder, "stop")
    lapse_after(TTL)  # a process killed just after it was served leaves its ticket, which keeps a row
    while not stop.exists():
        lease = Proxy.pool.acquire(ttl=TTL, timeout=30, wait=random.random() < 0.5)
        if lease is not None:
            use(lease, log)
        time.sleep(random.uniform(0, 0.05))  # so that sometimes there are no waiters


def use(lease: Any, log: Log) -> None:
    until = time.monotonic() + random.uniform(0.05, 0.15)
    try:
        log.note("acquired", lease)
        while time.monotonic() < until:
            time.sleep(0.003)
            log.note("using", lease)
        log.note("releasing", lease)
        lease.release()
    except LeaseLost:
        print("lost", lease, flush=True)  # no fault: the holder noticed the loss in time


def a_holder(log: Log) -> int | None:
    """Return the holder that acquired last, if there is one."""
    holders = dict[int, None]()
    for event in log.events():
        holders.pop(event.pid, None)
        if event.what in ("acquired", "using"):
            holders[event.pid] = None
    return next(reversed(holders), None)


def killed_while_holding(verdict: Verdict) -> int:
    return len(verdict.returned_after) + len(verdict.stranded)


def test_processes_that_are_killed_while_holding_never_share_a_row(spawn: Spawner, tmp_path: Path) -> None:
    """Fails if ``busy_before`` is removed from the condition of ``claim``: two processes would get the same row."""
    several(Proxy, ROWS)
    log = Log(tmp_path / "log")

    def start() -> Child:
        return spawn(work, str(tmp_path))

    children = {child.pid: child for child in [start() for _ in range(PROCESSES)]}
    eventually(lambda: len({event.pid for event in log.events()}) == PROCESSES)
    while killed_while_holding(judge(log.events())) < KILLS:
        pid = eventually(lambda: a_holder(log))
        children[pid].kill()
        log.killed(pid)
        replacement = start()
        children[replacement.pid] = replacement
    eventually(lambda: not judge(log.events()).stranded, within=60 * TTL)
    eventually(lambda: len(judge(log.events()).uses) > 4 * KILLS)
    (tmp_path / "stop").touch()
    for child in children.values():
        assert child.wait() in (0, -9), child.output

    verdict = judge(log.events())
    log.close()
    assert verdict.overlaps == []
    assert verdict.unfenced == []
    assert len(verdict.returned_after) >= KILLS

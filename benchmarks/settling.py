"""How long 64 queues on 8 real servers take to settle, and whether anybody who keeps its queue stops meanwhile."""

import multiprocessing
import os
import signal
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.db import connection

from resourcepool.db.dialect import DbNow
from resourcepool.models import Move, Queue, Server
from resourcepool.queues import QueueServer
from resourcepool.queues.administration import create
from tests.concurrency.evidence import Log
from tests.eventually import eventually

QUEUES, SERVERS = 64, 8
TERMS = ((1.0, 2.0), (1.0, 6.0))  # heartbeat and judge-dead interval in seconds: as kazoo's 2 s; the defaults
WORK = 0.005  # seconds of one piece of work
IDLE_FOR = 20.0  # seconds for which statements are counted
CONTEXT = multiprocessing.get_context("fork")
STATEMENTS = {
    "mysql": "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'QUESTIONS'",
}


def measure(heartbeat: float, judge_dead: float, rounds: int) -> None:
    """Print how long it takes after a join, a clean leave and a kill, each so many times."""
    name = f"orders {heartbeat:g} {judge_dead:g}"
    create(name, [str(n) for n in range(QUEUES)], heartbeat_every=heartbeat, judge_dead_after=judge_dead)
    print(f"{QUEUES} queues, {SERVERS} servers, heartbeat {heartbeat:g} s, judged dead after {judge_dead:g} s")
    with TemporaryDirectory(prefix="resourcepool-bench-") as folder:
        bench = Settling(name, Path(folder, "log"))
        try:
            for _ in range(SERVERS):
                bench.start()
            bench.until_settled(SERVERS)
            found: dict[str, list[tuple[float, int, float]]] = {"join": [], "leave": [], "kill": []}
            for _ in range(rounds):
                found["leave"].append(bench.once(lambda: bench.end(signal.SIGTERM), SERVERS - 1))
                found["join"].append(bench.once(bench.start, SERVERS))
                found["kill"].append(bench.once(lambda: bench.end(signal.SIGKILL), SERVERS - 1))
                found["join"].append(bench.once(bench.start, SERVERS))
        finally:
            bench.close()
    for what, results in found.items():
        took, moved, paused = zip(*results, strict=True)
        print(
            f"  {what:6} settled after {statistics.median(took):5.2f} s (longest {max(took):.2f}); moved"
            f" {min(moved)}-{max(moved)}; others' longest pause {max(paused) * 1_000:.0f} ms",
            flush=True,
        )


class Settling:
    """The servers of one queue group, and the log of their work."""

    def __init__(self, name: str, log: Path) -> None:
        self._name, self._path, self._log = name, log, Log(log)
        self._processes: list[Any] = []
        self._usual = 0.0

    def start(self) -> None:
        connection.close()  # a child must not share it
        process = CONTEXT.Process(
            target=work, args=(self._name, str(self._path), len(self._processes)), daemon=True
        )
        process.start()
        self._processes.append(process)

    def end(self, number: int) -> None:
        os.kill(self._processes.pop(0).pid, number)

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.join()

    def until_settled(self, servers: int) -> float:
        """Wait until so many servers share the queues evenly and have worked on each; return when that was."""
        eventually(lambda: self._is_settled(servers), within=90)
        fences = dict(Queue.objects.filter(queue_group__name=self._name).values_list("pk", "fence"))
        return float(eventually(lambda: self._all_worked(fences), within=30))

    def once(self, do: Callable[[], object], servers: int) -> tuple[float, int, float]:
        """Do it; return how long it took to settle, how many queues moved, and the others' longest pause."""
        time.sleep(2.0)
        before = dict(Queue.objects.filter(queue_group__name=self._name).values_list("pk", "fence"))
        move = Move.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
        began = time.monotonic()
        do()
        settled = self.until_settled(servers)
        what = (Move.Action.ASSIGNED, Move.Action.HANDED_OVER, Move.Action.TAKEN_OVER)
        moved = Move.objects.filter(pk__gt=move, what__in=what).values_list("queue_pk").distinct()
        stayed = set(before) - {pk for (pk,) in moved}
        return settled - began, len(moved), self._longest_pause(stayed, began, settled)

    def _is_settled(self, servers: int) -> bool:
        alive = set(
            Server.objects.filter(queue_group__name=self._name, busy_before__gt=DbNow()).values_list("pk")
        )
        rows = list(Queue.objects.filter(queue_group__name=self._name).values_list("cur_server", "req_server"))
        counts = [sum(cur == pk for cur, _ in rows) for (pk,) in alive]
        is_even = len(alive) == servers and max(counts) - min(counts) <= 1
        return is_even and sum(counts) == QUEUES and all(req is None for _, req in rows)

    def _all_worked(self, fences: dict[int, int]) -> float | None:
        first: dict[int, float] = {}
        for event in self._log.events():
            if fences.get(event.pk) == event.fence:
                first.setdefault(event.pk, event.at)
        return max(first.values()) if len(first) == len(fences) else None

    def _longest_pause(self, queues: set[int], began: float, settled: float) -> float:
        moments: dict[int, list[float]] = {pk: [] for pk in queues}
        for event in self._log.events():
            if event.pk in moments and began - 1.0 <= event.at <= settled + 0.5:
                moments[event.pk].append(event.at)
        pauses = [late - early for found in moments.values() for early, late in pairwise(found) if late > began]
        return max(pauses, default=0.0)


def work(name: str, path: str, number: int) -> None:
    """Be a server that works its queues in the plain loop."""
    log = Log(path)
    with QueueServer(name, name=f"server {number}") as server:
        server.stop_on_signals()
        while not server.stopping:
            for queue in server.queues():
                log.note("using", queue)
                time.sleep(WORK)


def measure_idle() -> None:
    """Print how many statements a server without work sends per heartbeat."""
    if connection.vendor not in STATEMENTS:
        return
    create("idle", [str(n) for n in range(QUEUES)])
    with QueueServer("idle", name="idle"):
        time.sleep(3.0)
        before = _asked()
        time.sleep(IDLE_FOR)
        sent = _asked() - before - 1  # our own question
    print(f"an idle server sends {sent / IDLE_FOR:.2f} statements per heartbeat of 1 s", flush=True)


def _asked() -> int:
    with connection.cursor() as cursor:
        cursor.execute(STATEMENTS[connection.vendor])
        return int(cursor.fetchone()[0])

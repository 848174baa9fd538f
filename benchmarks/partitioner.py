"""The same as ``benchmarks.queues`` for kazoo's SetPartitioner, on a ZooKeeper that runs already.

pip install kazoo
python -m benchmarks.partitioner 127.0.0.1:2181                    session 2 s, time_boundary 1 s
python -m benchmarks.partitioner 127.0.0.1:2181 10 30              kazoo's defaults
"""

import logging
import multiprocessing
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.concurrency.evidence import Event, Log
from tests.eventually import eventually

QUEUES, MEMBERS, ROUNDS = 64, 8, 3
WORK = 0.005  # seconds of one piece of work
CONTEXT = multiprocessing.get_context("spawn")


def main(hosts: str, session: float = 2.0, boundary: float = 1.0) -> None:
    logging.disable(logging.CRITICAL)
    found: dict[str, list[tuple[float, int, float]]] = {"join": [], "leave": [], "kill": []}
    with TemporaryDirectory(prefix="resourcepool-bench-") as folder:
        party = Party(hosts, session, boundary, Path(folder, "log"))
        try:
            for _ in range(MEMBERS):
                party.start()
            party.until_settled(0.0)
            for _ in range(ROUNDS):
                found["leave"].append(party.once(lambda: party.end(signal.SIGTERM)))
                found["join"].append(party.once(party.start))
                found["kill"].append(party.once(lambda: party.end(signal.SIGKILL)))
                found["join"].append(party.once(party.start))
        finally:
            party.close()
    print(f"kazoo, session {session:g} s, time_boundary {boundary:g} s; load {os.getloadavg()[0]:.1f}")
    for what, results in found.items():
        took, moved, paused = zip(*results, strict=True)
        print(
            f"  {what:6} settled after {statistics.median(took):5.2f} s (longest {max(took):.2f}); moved"
            f" {min(moved)}-{max(moved)}; others' longest pause {max(paused):.2f} s"
        )


class Party:
    """The members, and the log of their work."""

    def __init__(self, hosts: str, session: float, boundary: float, log: Path) -> None:
        self._how, self._path, self._log = (hosts, session, boundary), log, Log(log)
        self._members: dict[int, Any] = {}
        self._numbers = 0

    def start(self) -> None:
        self._numbers += 1
        member = CONTEXT.Process(target=work, args=(*self._how, str(self._path), self._numbers), daemon=True)
        member.start()
        self._members[self._numbers] = member
        eventually(
            lambda: any(e.what == "ready" and e.pid == self._numbers for e in self._log.events()), within=30
        )
        self._log.tell("go", self._numbers)

    def end(self, number: int) -> None:
        os.kill(self._members.pop(min(self._members)).pid, number)

    def close(self) -> None:
        for member in self._members.values():
            member.kill()
            member.join()

    def until_settled(self, since: float) -> float:
        """Wait until every queue is worked by one member under allocations made since then; return when that was."""
        return float(eventually(lambda: self._settled(since), within=180))

    def once(self, do: Callable[[], object]) -> tuple[float, int, float]:
        time.sleep(3.0)
        before = self._owners(self._log.events())
        began = time.monotonic()
        do()
        began = max(began, *(e.at for e in self._log.events() if e.what == "go"))
        settled = self.until_settled(began)
        events = self._log.events()
        after = self._owners(events)
        moments: dict[int, list[float]] = {pk: [] for pk in before if before[pk] == after[pk]}
        for event in events:
            if event.what == "using" and event.pk in moments and began - 1 <= event.at <= settled + 0.5:
                moments[event.pk].append(event.at)
        pauses = [b - a for found in moments.values() for a, b in pairwise(found) if b > began]
        return settled - began, len(before) - len(moments), max(pauses, default=0.0)

    def _settled(self, since: float) -> float | None:
        events = self._log.events()
        taken = {e.pid: e.at for e in events if e.what == "allocated"}
        if any(taken.get(number, 0.0) <= since for number in self._members):
            return None
        first: dict[int, Event] = {}
        for event in events:
            if event.what == "using" and event.at >= taken.get(event.pid, since) and event.pid in self._members:
                first.setdefault(event.pk, event)
        return max(event.at for event in first.values()) if len(first) == QUEUES else None

    def _owners(self, events: list[Event]) -> dict[int, int]:
        return {event.pk: event.pid for event in events if event.what == "using"}


def work(hosts: str, session: float, boundary: float, path: str, number: int) -> None:
    """Be a member: work what is allocated, release when told, as kazoo's documentation shows."""
    from kazoo.client import KazooClient

    logging.disable(logging.CRITICAL)
    log, is_over = Log(path, who=number), []
    signal.signal(signal.SIGTERM, lambda *_: is_over.append(True))
    client = KazooClient(hosts=hosts, timeout=session)
    client.start()
    log.tell("ready")
    eventually(lambda: any(e.what == "go" and e.pid == number for e in log.events()), within=30)
    parts = client.SetPartitioner("/bench", set=tuple(range(QUEUES)), time_boundary=boundary)
    was_acquired = False
    while not is_over and not parts.failed:
        if parts.release:
            parts.release_set()
            was_acquired = False
        elif parts.acquired:
            if not was_acquired:
                log.tell("allocated")
                was_acquired = True
            for part in parts:
                if parts.acquired and not is_over:
                    log.tell("using", pk=part)
                    time.sleep(WORK)
        else:
            parts.wait_for_acquire(timeout=0.5)
    parts.finish()
    client.stop()


if __name__ == "__main__":
    main(sys.argv[1], *map(float, sys.argv[2:]))

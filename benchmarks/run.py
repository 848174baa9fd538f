"""Runs the measurements of a plan in rounds, so that whatever disturbs the machine disturbs everybody alike."""

import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from benchmarks.contestants import CONTESTANTS
from benchmarks.places import ROOT
from benchmarks.plan import Plan, Point
from benchmarks.starting import starting

TIMEOUT = 300.0  # seconds for one measurement


class Rounds:
    """Every measurement of ``plan``, on the databases that have a URL."""

    def __init__(self, plan: Plan, urls: dict[str, str]) -> None:
        self._plan, self._urls = plan, urls
        self._cycles: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
        self._others: dict[str, Any] = {}

    def run(self) -> None:
        """Measure everything; prints one line for each measurement."""
        for number in range(1, self._plan.rounds + 1):
            for database, point, contestant in self._heats():
                label = f"round {number}  {database:<9}{point!s:<22}{contestant.name:<22}"
                words = {"contestant": contestant.name, "processes": point.processes, "rows": point.rows}
                words |= {"hold": point.hold, "seconds": self._plan.seconds}
                result = self._measure("cycles", words, database, contestant.databases)
                self._cycles[database, str(point), contestant.name].append(result)
                print(f"{label}{result['rate']:>9,.0f}/s  p99 {result['p99'] * 1000:8.1f} ms", flush=True)
        if "mysql" in self._urls:
            self._once()

    def medians(self) -> dict[str, Any]:
        """Return what was measured: of each figure the median over the rounds, of each count the sum."""
        return {"cycles": [_median(key, results) for key, results in self._cycles.items()], **self._others}

    def _heats(self) -> Iterator[tuple[str, Point, Any]]:
        for database in self._plan.databases:
            if database in self._urls:
                for point in self._plan.points if database == "mysql" else self._plan.other_points:
                    for contestant in CONTESTANTS:
                        if self._takes_part(contestant, database, point):
                            yield database, point, contestant

    def _takes_part(self, contestant: Any, database: str, point: Point) -> bool:
        if contestant.name == "raw limit" and point.processes > point.rows:
            return False  # each process needs a row of its own
        beside = database == "mysql" and contestant.databases == ("redis",) and "redis" in self._urls
        return beside or database in contestant.databases

    def _once(self) -> None:
        processes, threads, settle = self._plan.waiters
        words = {"processes": processes, "threads": threads, "settle": settle, "seconds": self._plan.seconds}
        self._others["waiters"] = self._measure("waiters", words, "mysql")
        print(f"waiters: {self._others['waiters']}", flush=True)
        leases, ttl = self._plan.keeper
        self._others["keeper"] = self._measure("keeper", {"leases": leases, "ttl": ttl}, "mysql")
        print(f"keeper: {self._others['keeper']}", flush=True)
        self._others["starting"] = starting(self._urls["mysql"], self._plan.starts)
        print(f"starting: {self._others['starting']}", flush=True)

    def _measure(
        self, what: str, words: dict[str, Any], database: str, databases: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        url = self._urls["redis" if databases == ("redis",) else database]
        # Django's own database stays the one that the others are measured on.
        environment = {**os.environ, "BENCH_URL": url, "DATABASE_URL": self._urls[database]}
        command = [sys.executable, "-m", "benchmarks.measure", what, json.dumps(words)]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
        if done.returncode:
            raise SystemExit(f"{what} {words} on {database} failed:\n{done.stderr[-3_000:]}")
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return result


def _median(key: tuple[str, str, str], results: list[dict[str, Any]]) -> dict[str, Any]:
    database, point, contestant = key
    figures = {name: statistics.median(one[name] for one in results) for name in ("rate", "p50", "p99", "max")}
    counts = {name: sum(one[name] for one in results) for name in ("cycles", "grants", "overtakings")}
    errors = [error for one in results for error in one["errors"]]
    names = {"database": database, "point": point, "contestant": contestant}
    return {**names, **figures, **counts, "errors": len(errors), "first_errors": errors[:3]}

"""Runs the measurements of a plan in rounds, so that whatever disturbs the machine disturbs everybody alike."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.contestants import Contestant
from benchmarks.heats import Choice, heats
from benchmarks.medians import median, starts
from benchmarks.ours import Ours, Spread, SpreadHintedByPostgreSQL, SpreadHintedByRedis
from benchmarks.places import ROOT
from benchmarks.plan import Plan, Point
from benchmarks.starting import starting

BESIDE = " in the other checkout"
TIMEOUT = 300.0  # seconds for one measurement
# Each way in which a waiter can hear of a release, and the server on which that is measured.
TELLING = {"mysql": (Spread, SpreadHintedByRedis), "postgres": (SpreadHintedByPostgreSQL,)}


class Tree(NamedTuple):
    """A checkout whose package is measured, and its databases by name; ``label`` is added to its contestants' names."""

    path: Path
    urls: dict[str, str]
    label: str = ""


class Rounds:
    """Every chosen measurement of ``plan``, on the databases that have a URL."""

    def __init__(self, plan: Plan, choice: Choice, trees: list[Tree]) -> None:
        self._plan, self._choice, self._trees, self._urls = plan, choice, trees, trees[0].urls
        self._cycles: dict[tuple[str, Point, str], list[dict[str, Any]]] = defaultdict(list)
        self._starts: list[dict[str, Any]] = []
        self._others: dict[str, Any] = {}

    def run(self) -> None:
        """Measure everything; prints one line for each measurement."""
        if "grant" in self._plan.parts:
            self._grant()
        for number in range(1, self._plan.rounds + 1):
            if "cycles" in self._plan.parts:
                self._round(number)
            if "start" in self._plan.parts and "mysql" in self._urls:
                self._start(number)
        if "mysql" in self._urls:
            self._once()

    def medians(self) -> dict[str, Any]:
        """Return what was measured, the figures of the rounds taken together."""
        found = {"cycles": [median(*key, results) for key, results in self._cycles.items()], **self._others}
        return {**found, "start": starts(self._starts)} if self._starts else found

    def _round(self, number: int) -> None:
        for database, point, contestant in heats(self._plan, self._choice, self._urls):
            for tree in self._trees_of(contestant):
                name = contestant.name + tree.label
                result = self._measure("cycles", database, tree, **self._words(contestant, point))
                self._cycles[database, point, name].append(result)
                label = f"round {number}  {database:<9}{point!s:<21} {name:<38}"
                cost = f"processor {result['processor'] * 1000:5.2f} ms"
                print(
                    f"{label}{result['rate']:>9,.0f}/s  p99 {result['p99'] * 1000:8.1f} ms  {cost}", flush=True
                )

    def _trees_of(self, contestant: type[Contestant]) -> list[Tree]:
        return self._trees if issubclass(contestant, Ours) else self._trees[:1]

    def _words(self, contestant: type[Contestant], point: Point) -> dict[str, Any]:
        words = {"contestant": contestant.name, "processes": point.processes, "rows": point.rows}
        return {**words, "hold": point.hold, **self._plan.lengths(point)}

    def _start(self, number: int) -> None:
        point, first = self._plan.start
        for tree in self._trees:
            result = self._measure("start", "mysql", tree, **self._words(Spread, point), first=first)
            self._starts.append({"contestant": Spread.name + tree.label, "point": str(point), **result})
            print(f"round {number}  start of {self._starts[-1]}", flush=True)

    def _grant(self) -> None:
        """First, before anything has tired the machine: one waiter, told in each way there is."""
        found = self._others["grant"] = []
        for database, kinds in TELLING.items():
            for kind in kinds:
                if database in self._urls and ("redis" in self._urls or not kind.needs_redis):
                    words = {"contestant": kind.name, "grants": self._plan.grants}
                    result = self._measure("grant", database, **words)
                    found.append({"database": database, **result})
                    print(f"grant: {found[-1]}", flush=True)

    def _once(self) -> None:
        processes, threads, settle = self._plan.waiters
        leases, ttl = self._plan.keeper
        if "waiters" in self._plan.parts:
            words = {"processes": processes, "threads": threads, "settle": settle, "seconds": settle}
            self._note("waiters", self._measure("waiters", "mysql", **words))
        if "keeper" in self._plan.parts:
            self._note("keeper", self._measure("keeper", "mysql", leases=leases, ttl=ttl))
        if "fresh" in self._plan.parts:
            self._note("fresh", starting(self._urls["mysql"], self._plan.fresh))

    def _note(self, part: str, result: dict[str, Any]) -> None:
        self._others[part] = result
        print(f"{part}: {result}", flush=True)

    def _measure(self, what: str, database: str, tree: Tree | None = None, **words: Any) -> dict[str, Any]:
        path, urls, _ = tree or self._trees[0]
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "project.settings", "BENCH_TREE": str(path)}
        environment |= {"DATABASE_URL": urls[database], "BENCH_REDIS": self._urls.get("redis", "")}
        command = [sys.executable, "-m", "benchmarks.measure", what, json.dumps(words)]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
        if done.returncode:
            raise SystemExit(f"{what} {words} on {database} failed:\n{done.stderr[-3_000:]}")
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return result

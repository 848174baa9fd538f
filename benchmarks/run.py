"""Runs the measurements of a plan in rounds, so that whatever disturbs the machine disturbs everybody alike."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from typing import Any

from benchmarks.heats import Choice, heats
from benchmarks.medians import median
from benchmarks.ours import Spread, SpreadHintedByPostgreSQL, SpreadHintedByRedis
from benchmarks.places import ROOT
from benchmarks.plan import Plan, Point
from benchmarks.starting import starting

TIMEOUT = 300.0  # seconds for one measurement
# Each way in which a waiter can hear of a release, and the server on which that is measured.
TELLING = {"mysql": (Spread, SpreadHintedByRedis), "postgres": (SpreadHintedByPostgreSQL,)}


class Rounds:
    """Every chosen measurement of ``plan``, on the databases that have a URL."""

    def __init__(self, plan: Plan, choice: Choice, urls: dict[str, str]) -> None:
        self._plan, self._choice, self._urls = plan, choice, urls
        self._cycles: dict[tuple[str, Point, str], list[dict[str, Any]]] = defaultdict(list)
        self._others: dict[str, Any] = {}

    def run(self) -> None:
        """Measure everything; prints one line for each measurement."""
        if "grant" in self._plan.parts:
            self._grant()
        if "cycles" in self._plan.parts:
            for number in range(1, self._plan.rounds + 1):
                self._round(number)
        if "mysql" in self._urls:
            self._once()

    def medians(self) -> dict[str, Any]:
        """Return what was measured, the figures of the rounds taken together."""
        return {"cycles": [median(*key, results) for key, results in self._cycles.items()], **self._others}

    def _round(self, number: int) -> None:
        for database, point, contestant in heats(self._plan, self._choice, self._urls):
            words = {"contestant": contestant.name, "processes": point.processes, "rows": point.rows}
            result = self._measure("cycles", database, **words, hold=point.hold, seconds=self._plan.seconds)
            self._cycles[database, point, contestant.name].append(result)
            label = f"round {number}  {database:<9}{point!s:<21} {contestant.name:<38}"
            print(f"{label}{result['rate']:>9,.0f}/s  p99 {result['p99'] * 1000:8.1f} ms", flush=True)

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
        if "starting" in self._plan.parts:
            self._note("starting", starting(self._urls["mysql"], self._plan.starts))

    def _note(self, part: str, result: dict[str, Any]) -> None:
        self._others[part] = result
        print(f"{part}: {result}", flush=True)

    def _measure(self, what: str, database: str, **words: Any) -> dict[str, Any]:
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "project.settings"}
        environment |= {"DATABASE_URL": self._urls[database], "BENCH_REDIS": self._urls.get("redis", "")}
        command = [sys.executable, "-m", "benchmarks.measure", what, json.dumps(words)]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
        if done.returncode:
            raise SystemExit(f"{what} {words} on {database} failed:\n{done.stderr[-3_000:]}")
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return result

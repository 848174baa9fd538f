"""Measures one thing on one database, in a process of its own, and prints the result as JSON.

python -m benchmarks.measure cycles '{"contestant": "raw limit", "processes": 8, "rows": 40, "hold": 0, "seconds": 3}'
"""

import json
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

import django

from benchmarks import fleet
from benchmarks.order import overtakings


def cycles(contestant: str, processes: int, rows: int, hold: float, seconds: float) -> dict[str, Any]:
    """Return cycles per second, how long acquiring took, and what went wrong."""
    from benchmarks.contestants import CONTESTANTS

    url = os.environ["BENCH_URL"]
    kind = next(one for one in CONTESTANTS if one.name == contestant)
    kind.prepare(url, rows)
    tallies = fleet.run(processes, lambda number: fleet.cycles(kind(url, number), hold), seconds)
    waits = sorted(wait for tally in tallies for wait in tally.waits)
    return {
        "rate": len(waits) / seconds,
        "p50": fleet.quantile(waits, 0.50),
        "p99": fleet.quantile(waits, 0.99),
        "max": waits[-1] if waits else 0.0,
        "cycles": len(waits),
        "errors": [error for tally in tallies for error in tally.errors],
        "grants": sum(len(tally.notes) for tally in tallies),
        "overtakings": overtakings([note for tally in tallies for note in tally.notes]),
    }


def waiters(processes: int, threads: int, settle: float, seconds: float) -> dict[str, Any]:
    """Return statements per second on a server on whose exhausted pool so many wait."""
    from benchmarks.idle import statements_per_second

    return statements_per_second(processes, threads, settle, seconds)


def keeper(leases: int, ttl: float) -> dict[str, Any]:
    """Return what it costs to keep so many leases in one process."""
    from benchmarks.keeping import cost

    return cost(leases, ttl)


WHAT: dict[str, Callable[..., dict[str, Any]]] = {"cycles": cycles, "waiters": waiters, "keeper": keeper}

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    django.setup()
    logging.disable(logging.WARNING)
    print(json.dumps(WHAT[sys.argv[1]](**json.loads(sys.argv[2]))))

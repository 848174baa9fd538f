"""Measures one thing on one database, in a process of its own, and prints the result as JSON.

python -m benchmarks.measure cycles '{"contestant": "raw limit", "processes": 8, "rows": 40, "hold": 0, "seconds": 3}'

DATABASE_URL is the database, migrated; BENCH_REDIS the Redis of those contestants that need one.
"""

import json
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

import django

from benchmarks import fleet
from benchmarks.counters import deadlocks
from benchmarks.order import places_overtaken


def cycles(contestant: str, processes: int, rows: int, hold: float, seconds: float) -> dict[str, Any]:
    """Return cycles per second, how long acquiring took, and what went wrong."""
    from benchmarks.heats import contestant_named

    url, kind = os.environ["DATABASE_URL"], contestant_named(contestant)
    kind.prepare(url, rows)
    before = deadlocks(url)
    tallies = fleet.run(processes, lambda number: fleet.cycles(kind(url, number), hold), seconds)
    waits = sorted(wait for tally in tallies for wait in tally.waits)
    return {
        "rate": len(waits) / seconds,
        "p50": fleet.quantile(waits, 0.50),
        "p99": fleet.quantile(waits, 0.99),
        "max": waits[-1] if waits else 0.0,
        "cycles": len(waits),
        "errors": [error for tally in tallies for error in tally.errors],
        "deadlocks": deadlocks(url) - before,
        "overtaken": _overtaken(tallies, 1),
        "overtaken_by_lease": _overtaken(tallies, 2),
    }


def _overtaken(tallies: list[fleet.Tally], moment: int) -> dict[str, int] | None:
    """Return by how many places those with a ticket were overtaken; None where nobody notes that moment."""
    counted = [(note[0], note[moment]) for tally in tallies for note in tally.notes]
    others = [(note[0], note[moment]) for tally in tallies for note in tally.warm_notes]
    if not counted or any(at is None for _, at in counted + others):
        return None
    places = places_overtaken(counted, others)
    return {"grants": len(places), "p99": fleet.quantile(places, 0.99), "max": places[-1]}


def grant(contestant: str, grants: int) -> dict[str, Any]:
    """Return how long after a release one waiter has its lease."""
    from benchmarks.heats import contestant_named
    from benchmarks.waking import delays

    found = delays(contestant_named(contestant), os.environ["DATABASE_URL"], grants)
    return {
        "contestant": contestant,
        "grants": grants,
        "p50": fleet.quantile(found, 0.50),
        "p99": fleet.quantile(found, 0.99),
        "max": found[-1],
    }


def waiters(processes: int, threads: int, settle: float, seconds: float) -> dict[str, Any]:
    """Return statements per second on a server on whose exhausted pool so many wait."""
    from benchmarks.idle import statements_per_second

    return statements_per_second(processes, threads, settle, seconds)


def keeper(leases: int, ttl: float) -> dict[str, Any]:
    """Return what it costs to keep so many leases in one process."""
    from benchmarks.keeping import cost

    return cost(leases, ttl)


WHAT: dict[str, Callable[..., dict[str, Any]]] = {
    "cycles": cycles,
    "grant": grant,
    "waiters": waiters,
    "keeper": keeper,
}

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    django.setup()
    logging.disable(logging.WARNING)
    print(json.dumps(WHAT[sys.argv[1]](**json.loads(sys.argv[2]))))

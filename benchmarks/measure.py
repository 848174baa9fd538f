"""Measures one thing on one database, in a process of its own, and prints the result as JSON.

python -m benchmarks.measure cycles '{"contestant": "raw limit", "processes": 8, "rows": 40, "hold": 0, "seconds": 3}'

DATABASE_URL is the database, migrated; BENCH_REDIS the Redis of those contestants that need one. BENCH_TREE is the
checkout whose package is measured, by default this one.
"""

import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import django

from benchmarks import fleet
from benchmarks.counters import Activity, deadlocks
from benchmarks.order import places_overtaken


def cycles(
    contestant: str, processes: int, rows: int, hold: float, seconds: float, warm_up: float = 1.0
) -> dict[str, Any]:
    """Return cycles per second, what each took and cost, and what went wrong; seconds, of processor time, too."""
    from benchmarks.heats import contestant_named

    url, kind = os.environ["DATABASE_URL"], contestant_named(contestant)
    kind.prepare(url, rows)
    activity, before = Activity(url), deadlocks(url)
    phases = fleet.run_phases(
        processes,
        lambda number: fleet.cycles(kind(url, number), hold),
        (warm_up, seconds),
        activity.watch,
    )
    warm, counted = zip(*phases, strict=True)
    waits = sorted(wait for tally in counted for wait in tally.waits)
    number = len(waits) or 1
    return {
        "rate": len(waits) / seconds,
        "p50": fleet.quantile(waits, 0.50),
        "p99": fleet.quantile(waits, 0.99),
        "max": waits[-1] if waits else 0.0,
        "processor": sum(tally.processor for tally in counted) / number,
        "statements": activity.statements and activity.statements * seconds / number,
        "sessions": activity.sessions,
        "cycles": len(waits),
        "errors": [error for tally in counted for error in tally.errors],
        "deadlocks": deadlocks(url) - before,
        "overtaken": _overtaken(warm, counted, 1),
        "overtaken_by_lease": _overtaken(warm, counted, 2),
    }


def start(
    contestant: str, processes: int, rows: int, hold: float, first: float, warm_up: float, seconds: float
) -> dict[str, Any]:
    """Return cycles per second in the ``first`` seconds, and ``warm_up`` seconds later; for ``seconds``."""
    from benchmarks.heats import contestant_named

    url, kind = os.environ["DATABASE_URL"], contestant_named(contestant)
    kind.prepare(url, rows)
    lengths = (first, warm_up, seconds)
    phases = fleet.run_phases(processes, lambda number: fleet.cycles(kind(url, number), hold), lengths)
    done = sum(len(begun.waits) - begun.late for begun, _, _ in phases)
    steady = sum(len(last.waits) for _, _, last in phases)
    return {"rate": done / first, "steady_rate": steady / seconds}


def _overtaken(warm: Sequence[fleet.Tally], counted: Sequence[fleet.Tally], at: int) -> dict[str, int] | None:
    """Return by how many places those with a ticket were overtaken; None where nobody notes that moment."""
    own, others = ([(note[0], note[at]) for tally in each for note in tally.notes] for each in (counted, warm))
    if not own or any(moment is None for _, moment in own + others):
        return None
    places = places_overtaken(own, others)
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
    "start": start,
    "grant": grant,
    "waiters": waiters,
    "keeper": keeper,
}

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    sys.path.insert(0, os.environ.get("BENCH_TREE", ""))
    django.setup()
    logging.disable(logging.WARNING)
    print(json.dumps(WHAT[sys.argv[1]](**json.loads(sys.argv[2]))))

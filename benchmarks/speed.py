"""The table that a user sizes a pool by: grants per second and waits, by rows, workers and how long a row is held."""

from collections.abc import Iterator
from typing import Any

from benchmarks.others import BlockingPop
from benchmarks.ours import Spread
from benchmarks.plan import EXHAUSTED, FEW

DATABASES = {"mysql": "MariaDB", "postgres": "PostgreSQL", "sqlite": "SQLite"}


def page(measured: dict[str, Any]) -> str:
    """Return the table, and the limits of this machine, as Markdown."""
    ours = {
        (one["database"], one["point"]): one for one in measured["cycles"] if one["contestant"] == Spread.name
    }
    lines = [*_table(ours), "", *_limits(ours), *_sessions(ours), *_redis(measured["cycles"], ours)]
    return "\n".join(lines) + "\n"


def _table(ours: dict[tuple[str, str], dict[str, Any]]) -> Iterator[str]:
    names = [name for name in DATABASES if any(database == name for database, _ in ours)]
    yield f"| rows | workers | held for | {' | '.join(DATABASES[name] for name in names)} |"
    yield "|--:|--:|--:|" + "--:|" * len(names)
    points = {one["point"]: (one["rows"], one["processes"], one["hold"]) for one in ours.values()}
    for point, (rows, processes, hold) in sorted(points.items(), key=lambda item: (item[1][2], *item[1])):
        cells = [_cell(ours.get((name, point))) for name in names]
        yield f"| {rows:,} | {processes} | {f'{hold * 1000:g} ms' if hold else '0'} | {' | '.join(cells)} |"


def _cell(one: dict[str, Any] | None) -> str:
    return f"{one['rate']:,.0f}/s, {_ms(one['p99'])}" if one else "-"


def _limits(ours: dict[tuple[str, str], dict[str, Any]]) -> Iterator[str]:
    """N of the sizing rule: the best rate that was seen while rows are free, and while workers wait."""
    for name, title in DATABASES.items():
        here = [one for (database, _), one in ours.items() if database == name]
        free = max((one["rate"] for one in here if one["processes"] <= one["rows"]), default=0)
        waiting = max((one["rate"] for one in here if one["processes"] > one["rows"]), default=0)
        if free and waiting:
            yield f"- {title}, on this machine: {free:,.0f} grants/s while rows are free, {waiting:,.0f} with waiters."


def _sessions(ours: dict[tuple[str, str], dict[str, Any]]) -> Iterator[str]:
    for name, title in DATABASES.items():
        if (one := ours.get((name, str(EXHAUSTED)))) and one["sessions"]:
            yield f"- {one['processes']} workers had at most {one['sessions']} sessions at once on {title}."


def _redis(cycles: list[dict[str, Any]], ours: dict[tuple[str, str], dict[str, Any]]) -> Iterator[str]:
    for point in (str(FEW[-1]), str(EXHAUSTED)):
        redis = [one for one in cycles if one["contestant"] == BlockingPop.name and one["point"] == point]
        mine = ours.get(("mysql", point))
        if redis and mine:
            yield f"- {point}: {_cell(mine)} with MariaDB; {_cell(redis[0])} with a list in Redis (`BLPOP`)."


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.{1 if seconds < 0.01 else 0}f} ms"

"""What several rounds of the same measurement say together."""

import statistics
from collections.abc import Iterable
from typing import Any

from benchmarks.plan import Point


def median(database: str, point: Point, contestant: str, results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the medians of rate, p50 and p99, the largest of every maximum, and the sum of what is counted."""
    errors = [error for one in results for error in one["errors"]]
    said: dict[str, Any] = {"database": database, "point": str(point), "contestant": contestant}
    said |= {name: statistics.median(one[name] for one in results) for name in ("rate", "p50", "p99")}
    said["max"] = max(one["max"] for one in results)
    said |= {name: sum(one[name] for one in results) for name in ("cycles", "deadlocks")}
    if point.hold:
        said |= {"ideal_rate": point.ideal_rate, "ideal_wait": point.ideal_wait}
    for moment in ("overtaken", "overtaken_by_lease"):
        said[moment] = _overtaken(one[moment] for one in results)
    return {**said, "errors": len(errors), "first_errors": errors[:3]}


def _overtaken(results: Iterable[dict[str, int] | None]) -> dict[str, float] | None:
    known = [one for one in results if one]
    if not known:
        return None
    return {
        "grants": sum(one["grants"] for one in known),
        "p99": statistics.median(one["p99"] for one in known),
        "max": max(one["max"] for one in known),
    }

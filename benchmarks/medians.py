"""What several rounds of the same measurement say together."""

import statistics
from collections.abc import Iterable
from typing import Any

from benchmarks.plan import Point

COMPARED = ("rate", "p99", "processor")


def median(database: str, point: Point, contestant: str, results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the medians of what was measured, the largest of every maximum, and the sum of what is counted."""
    errors = [error for one in results for error in one["errors"]]
    said: dict[str, Any] = {"database": database, "point": str(point), "contestant": contestant}
    said |= {"processes": point.processes, "rows": point.rows, "hold": point.hold}
    said |= {name: statistics.median(one[name] for one in results) for name in (*COMPARED, "p50")}
    said |= {name: sum(one[name] for one in results) for name in ("cycles", "deadlocks")}
    said["max"] = max(one["max"] for one in results)
    counted = [one["statements"] for one in results if one["statements"]]
    said["statements"] = statistics.median(counted) if counted else None
    said["sessions"] = max((one["sessions"] for one in results if one["sessions"]), default=None)
    if point.hold:
        said |= {"ideal_rate": point.ideal_rate, "ideal_wait": point.ideal_wait}
    for moment in ("overtaken", "overtaken_by_lease"):
        said[moment] = _overtaken(one[moment] for one in results)
    rounds = [{name: one[name] for name in COMPARED} for one in results]
    return {**said, "rounds": rounds, "errors": len(errors), "first_errors": errors[:3]}


def ratio(ours: dict[str, Any] | None, theirs: dict[str, Any] | None, figure: str = "rate") -> float | None:
    """Return the median of the ratios of each round, because a round's disturbances are in both; None without any."""
    if not ours or not theirs:
        return None
    pairs = [
        (mine[figure], other[figure]) for mine, other in zip(ours["rounds"], theirs["rounds"], strict=False)
    ]
    return (
        statistics.median(mine / other for mine, other in pairs) if pairs and all(b for _, b in pairs) else None
    )


def starts(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return, of each contestant, the medians of its starts, and of the ratios to the steady rate that followed."""
    found = []
    for name in dict.fromkeys(one["contestant"] for one in results):
        rounds = [one for one in results if one["contestant"] == name]
        figures = {key: statistics.median(one[key] for one in rounds) for key in ("rate", "steady_rate")}
        share = statistics.median(one["rate"] / max(1.0, one["steady_rate"]) for one in rounds)
        found.append({"contestant": name, "point": rounds[0]["point"], **figures, "share": share})
    return found


def _overtaken(results: Iterable[dict[str, int] | None]) -> dict[str, float] | None:
    known = [one for one in results if one]
    if not known:
        return None
    return {
        "grants": sum(one["grants"] for one in known),
        "p99": statistics.median(one["p99"] for one in known),
        "max": max(one["max"] for one in known),
    }

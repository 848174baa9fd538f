"""What the tables say of what was measured."""

from typing import Any

import pytest

from benchmarks.aims import Row
from benchmarks.report import is_sound, tables

EXHAUSTED = "128 on 40 held 50 ms"


def result(contestant: str, point: str, rate: float, **more: Any) -> dict[str, Any]:
    named = {"database": "mysql", "point": point, "contestant": contestant, "rate": rate}
    figures = {
        "p50": 0.1,
        "p99": 0.22,
        "max": 0.3,
        "deadlocks": 0,
        "overtaken": None,
        "overtaken_by_lease": None,
    }
    return {**named, **figures, "cycles": 10, "errors": 0, **more}


def waiting(contestant: str, rate: float, **more: Any) -> dict[str, Any]:
    return result(contestant, EXHAUSTED, rate, ideal_rate=800.0, ideal_wait=0.11, **more)


def measured(*cycles: dict[str, Any], **more: Any) -> dict[str, Any]:
    machine = dict.fromkeys(("processors", "memory", "system", "python", "django", "mysqlclient"), "?")
    return {"machine": machine, "servers": {}, "rounds": 3, "seconds": 4.0, "cycles": list(cycles), **more}


def test_ratios_are_taken_within_the_run() -> None:
    text = tables(
        measured(
            result("raw limit", "8 on 40", 1_000),
            result("naive protocol", "8 on 40", 150),
            result("resourcepool, sticky", "8 on 40", 600),
            result("resourcepool, sticky without history", "8 on 40", 750),
        )
    )
    assert "| `sticky` against the raw limit, 8 on 40 | >= 0.55 | >= 0.70 | 0.60 | reached floor |" in text
    assert "| `sticky` against naive protocol, 8 on 40 | >= 1.50 | >= 3.00 | 4.00 | reached aim |" in text
    assert "| `sticky` with history against without, 8 on 40 | >= 0.90 | >= 0.95 | 0.80 | **missed** |" in text
    assert "| callers that saw an error, of 40 calls | <= 0 | <= 0 | 0 | reached aim |" in text


def test_waits_are_compared_with_the_ideal() -> None:
    overtaken = {"grants": 5, "p99": 2, "max": 6}
    text = tables(measured(waiting("resourcepool, spread", 600, overtaken=overtaken)))
    assert (
        f"| {EXHAUSTED}, polling: rate against the ideal | >= 0.75 | >= 0.85 | 0.75 | reached floor |" in text
    )
    assert (
        f"| {EXHAUSTED}, polling: p99 wait against the ideal | <= 2.5 | <= 1.8 | 2.0 | reached floor |" in text
    )
    assert "by which a waiter is overtaken | <= 8 | <= 4 | 6; p99 2 | reached floor |" in text
    assert "| resourcepool, spread | 600 | 0.75 | 100 ms | 220 ms | 300 ms | 2.0 | 2, 6 | 0 |" in text


def test_each_way_to_be_told_has_its_row() -> None:
    one = {"database": "mysql", "contestant": "resourcepool, spread", "grants": 50, "p50": 0.04, "p99": 0.2}
    row = "| one waiter, polling: has the row after its release, p50 | <= 30.0 ms | <= 15.0 ms |"
    assert f"{row} 40.0 ms; p99 200.0 ms | **missed** |" in tables(measured(grant=[one]))


@pytest.mark.parametrize(
    ("bounds", "value", "verdict"),
    [
        ((0.9, 0.95), 0.95, "reached aim"),
        ((0.9, 0.95), 0.9, "reached floor"),
        ((0.9, 0.95), 0.899, "**missed**"),
        ((8, 4), 4, "reached aim"),
        ((8, 4), 8, "reached floor"),
        ((8, 4), 9, "**missed**"),
    ],
)
def test_less_is_better_where_the_aim_is_below_the_floor(
    bounds: tuple[float, float], value: float, verdict: str
) -> None:
    assert Row("x", bounds, value).verdict == verdict


@pytest.mark.parametrize("broken", [{"errors": 1}, {"cycles": 0}])
def test_an_error_that_a_caller_saw_is_no_sound_run(broken: dict[str, int]) -> None:
    assert is_sound(measured(result("resourcepool, spread", "1 on 40", 1)))
    assert not is_sound(measured(result("resourcepool, spread", "1 on 40", 1, **broken)))
    assert is_sound(measured(result("naive protocol", "1 on 40", 1, errors=9)))

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
        "processor": 0.002,
        "statements": 5.25,
        "sessions": 130,
        "deadlocks": 0,
        "overtaken": None,
        "overtaken_by_lease": None,
    }
    rounds = [{"rate": rate, "p99": 0.22, "processor": 0.002}]
    return {**named, **figures, "cycles": 10, "errors": 0, "rounds": rounds, **more}


def waiting(contestant: str, rate: float, **more: Any) -> dict[str, Any]:
    return result(contestant, EXHAUSTED, rate, ideal_rate=800.0, ideal_wait=0.11, **more)


def measured(*cycles: dict[str, Any], **more: Any) -> dict[str, Any]:
    machine = dict.fromkeys(("processors", "memory", "system", "python", "django", "mysqlclient"), "?")
    lengths = {"rounds": 3, "warm_up": 2.0, "seconds": 4.0}
    return {"machine": machine, "servers": {}, **lengths, "cycles": list(cycles), **more}


def test_ratios_are_medians_of_those_of_each_round() -> None:
    ours = [{"rate": 500, "p99": 0.2, "processor": 0.004}, {"rate": 900, "p99": 0.1, "processor": 0.002}]
    theirs = [{"rate": 1_000, "p99": 0.1, "processor": 0.002}, {"rate": 900, "p99": 0.1, "processor": 0.002}]
    text = tables(
        measured(
            waiting("claim-first sketch", 900, rounds=[*theirs, theirs[0]]),
            waiting("resourcepool, spread", 700, rounds=[*ours, ours[0]]),
        )
    )
    beside = "beside claim-first sketch"
    assert f"| {EXHAUSTED}: rate {beside} | >= 0.95 | >= 1.10 | 0.50 | **missed** |" in text
    assert f"| {EXHAUSTED}: p99 of the wait {beside} | <= 1.00 | <= 0.80 | 2.00 | **missed** |" in text
    figure = "processor time of the clients for a cycle"
    assert f"| {EXHAUSTED}: {figure} {beside} | <= 1.40 | <= 1.20 | 2.00 | **missed** |" in text


def test_the_raw_limit_is_compared_where_rows_are_free() -> None:
    raw, ours = result("raw limit", "8 on 40", 1_000), result("resourcepool, sticky", "8 on 40", 500)
    text = tables(measured(raw, ours))
    assert (
        "| 8 on 40, resourcepool, sticky: rate beside the raw limit | >= 0.45 | >= 0.60 | 0.50 | reached"
        in text
    )
    assert "| callers that saw an error, of 20 calls | <= 0 | <= 0 | 0 | reached aim |" in text


def test_a_full_pool_is_judged_by_sessions_and_order() -> None:
    orders = {
        "overtaken": {"grants": 5, "p99": 2, "max": 12},
        "overtaken_by_lease": {"grants": 5, "p99": 2, "max": 6},
    }
    text = tables(measured(waiting("resourcepool, spread", 600, **orders)))
    assert f"| {EXHAUSTED}: most sessions at once | <= 256 | <= 216 | 130 | reached aim |" in text
    assert "in the order in which rows were given | <= 8 | <= 4 | 6; in the order in which acquire" in text
    cells = "600 | 0.75 | 100 ms | 220 ms | 300 ms | 2.0 | 2.00 | 5.2 | 130 | 2, 12 | 0"
    assert f"| resourcepool, spread | {cells} |" in text


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
    assert is_sound(measured(result("SKIP LOCKED", "1 on 40", 1, errors=9)))

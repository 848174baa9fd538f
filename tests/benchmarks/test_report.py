"""What the tables say of what was measured."""

from typing import Any

import pytest

from benchmarks.report import is_sound, tables


def result(contestant: str, point: str, rate: float, **more: Any) -> dict[str, Any]:
    named = {"database": "mysql", "point": point, "contestant": contestant, "rate": rate, "p99": 0.2}
    return {**named, "cycles": 10, "errors": 0, "grants": 5, "overtakings": 1, **more}


def measured(*cycles: dict[str, Any]) -> dict[str, Any]:
    machine = dict.fromkeys(("processors", "memory", "system", "python", "django", "mysqlclient"), "?")
    return {"machine": machine, "servers": {}, "rounds": 3, "seconds": 4.0, "cycles": list(cycles)}


def test_ratios_are_taken_within_the_run() -> None:
    text = tables(
        measured(
            result("raw limit", "8 on 40", 1_000),
            result("resourcepool, sticky", "8 on 40", 600),
            result("resourcepool, spread", "128 on 40 held 50 ms", 400),
        )
    )
    assert "| `sticky` against the raw limit, 8 on 40 | >= 0.55 | 0.60 |" in text
    assert "| 128 on 40 held 50 ms: rate against the ideal 800/s | >= 0.9 | 0.50 |" in text
    assert "| 128 on 40 held 50 ms: p99 wait against the ideal 110 ms | <= 1.5 | 1.8 |" in text
    assert "| callers that saw an error, of 40 calls | 0 | 0 |" in text


@pytest.mark.parametrize("broken", [{"errors": 1}, {"cycles": 0}])
def test_an_error_that_a_caller_saw_is_no_sound_run(broken: dict[str, int]) -> None:
    assert is_sound(measured(result("resourcepool, spread", "1 on 40", 1)))
    assert not is_sound(measured(result("resourcepool, spread", "1 on 40", 1, **broken)))
    assert is_sound(measured(result("document 000", "1 on 40", 1, errors=9)))

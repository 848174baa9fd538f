"""Counting those who were served before somebody with an earlier ticket."""

import pytest

from benchmarks.order import overtakings


@pytest.mark.parametrize(
    ("grants", "expected"),
    [
        ([], 0),
        ([(1, 0.0), (2, 1.0), (3, 2.0)], 0),
        ([(3, 2.0), (1, 0.0), (2, 1.0)], 0),
        ([(1, 0.04), (2, 0.0)], 0),  # within one step
        ([(1, 1.0), (2, 0.0)], 1),
        ([(1, 9.0), (2, 0.0), (3, 1.0), (4, 9.0)], 2),
    ],
)
def test_whoever_is_served_long_before_an_earlier_ticket_has_overtaken(
    grants: list[tuple[int, float]], expected: int
) -> None:
    assert overtakings(grants) == expected

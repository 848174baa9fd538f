"""The times of server kills."""

import pytest

from tests.chaos.faults import crashes


@pytest.mark.parametrize(
    ("seconds", "every", "moments"),
    [(60, 20, [15, 35]), (20, 20, [5]), (8, 20, [2]), (60, 0, []), (100, 20, [15, 35, 55, 75])],
)
def test_the_server_is_killed_now_and_then_and_has_time_to_come_back(
    seconds: float, every: float, moments: list[float]
) -> None:
    assert crashes(seconds, every) == moments

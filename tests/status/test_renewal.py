"""The last renewal of a lease, computed from its ttl and the time left."""

import pytest

from resourcepool.status.resources.holders import renewal


@pytest.mark.parametrize(
    ("ttl", "expires_in", "said"),
    [
        (60, 60, "0 s ago (due every 20 s)"),
        (60, 60.01, "0 s ago (due every 20 s)"),  # rounding of the clock
        (60, 40, "20 s ago (due every 20 s)"),
        (15, 11, "4 s ago (due every 5 s)"),
        (15, 7, "8 s ago: overdue (due every 5 s)"),
        (600, 0, "10 min ago: overdue (due every 3 min)"),
    ],
)
def test_it_is_told_and_whether_it_is_overdue(ttl: float, expires_in: float, said: str) -> None:
    assert str(renewal(ttl, expires_in)) == said


@pytest.mark.parametrize(("ttl", "expires_in"), [(None, 10), (60, 61)])
def test_nothing_is_said_where_it_cannot_be_known(ttl: float | None, expires_in: float) -> None:
    assert renewal(ttl, expires_in) is None

"""The numbers of the charts."""

from collections.abc import Iterator

import pytest

from resourcepool.db.dialect import DbLater
from resourcepool.models import Sample
from resourcepool.status.resources.activity import ChartRange, Point, trend


@pytest.fixture(autouse=True)
def _no_samples() -> Iterator[None]:
    yield
    Sample.objects.all().delete()


def sample(
    ago: int, free: int = 0, leased: int = 0, waiters: int = 0, acquired: int = 0, lost: int = 0
) -> None:
    """Add the sample of a minute; ``ago``: 0 is the latest one."""
    numbers = {"free": free, "leased": leased, "waiters": waiters, "acquired": acquired, "lost": lost}
    Sample.objects.create(pool="a.a", minute=DbLater(-60 * (ago + 1) - 10), **numbers)


def test_one_point_a_minute_the_oldest_first_with_gaps() -> None:
    sample(0, free=3, leased=5, acquired=7)
    sample(14)
    points = trend("a.A", ChartRange.QUARTER)
    assert len(points) == 15
    assert points[-1] == Point(leased=5, capacity=8, waiters=0, acquired=7, lost=0)
    assert points[0] == Point(0, 0, 0, 0, 0)
    assert points[1:-1] == [None] * 13


def test_of_a_day_fifteen_minutes_are_one_point_that_tells_the_worst_of_them() -> None:
    sample(0, 9, 1, 0, 4, 1)
    sample(14, 2, 8, 6, 8, 2)
    sample(15, leased=3)
    points = trend("a.A", ChartRange.DAY)
    assert len(points) == 96
    assert points[-1] == Point(leased=8, capacity=10, waiters=6, acquired=6, lost=3)
    assert points[-2] == Point(leased=3, capacity=3, waiters=0, acquired=0, lost=0)


def test_what_is_older_or_of_another_pool_is_left_out() -> None:
    sample(15)
    sample(900)
    Sample.objects.create(pool="other.pool", minute=DbLater(-70))
    assert not any(trend("a.A", ChartRange.QUARTER))

"""The numbers of the charts."""

from collections.abc import Iterator

import pytest

from resourcepool.db.dialect import DbLater
from resourcepool.models import Sample
from resourcepool.status.resources.activity import ChartRange, Point, Row, fold, trends, up_to_now


@pytest.fixture(autouse=True)
def _no_samples() -> Iterator[None]:
    yield
    Sample.objects.all().delete()


def row(ago: int, free: int = 0, leased: int = 0, waiters: int = 0, acquired: int = 0, lost: int = 0) -> Row:
    return (ago, free, leased, waiters, acquired, lost)


def test_one_point_a_minute_the_oldest_first_with_gaps() -> None:
    points = fold([row(0, free=3, leased=5, acquired=7), row(14)], ChartRange.QUARTER)
    assert len(points) == 15
    assert points[-1] == Point(leased=5, capacity=8, waiters=0, acquired=7, lost=0)
    assert points[0] == Point(0, 0, 0, 0, 0)
    assert points[1:-1] == [None] * 13


def test_of_a_day_fifteen_minutes_are_one_point_that_tells_the_worst_of_them() -> None:
    points = fold([row(0, 9, 1, 0, 4, 1), row(14, 2, 8, 6, 8, 2), row(15, leased=3)], ChartRange.DAY)
    assert len(points) == 96
    assert points[-1] == Point(leased=8, capacity=10, waiters=6, acquired=6, lost=3)
    assert points[-2] == Point(leased=3, capacity=3, waiters=0, acquired=0, lost=0)


@pytest.mark.parametrize(("span", "last"), [(ChartRange.QUARTER, 9), (ChartRange.HOUR, 9), (ChartRange.DAY, 1)])
def test_a_chart_of_minutes_ends_with_this_moment(span: ChartRange, last: int) -> None:
    points = fold([row(0, leased=1)], span)
    now = Point(leased=9, capacity=9, waiters=0, acquired=None, lost=None)
    shown = up_to_now(points, now, span)
    assert len(shown) == len(points)
    assert shown[-1] is not None
    assert shown[-1].leased == last


def test_what_is_older_is_left_out() -> None:
    assert not any(fold([row(15), row(900)], ChartRange.QUARTER))


def test_samples_stand_where_they_belong_and_by_pool() -> None:
    for pool, ago in (("a.a", 70), ("a.a", 190), ("b.b", 70), ("other.pool", 70)):
        Sample.objects.create(pool=pool, minute=DbLater(-ago), leased=ago)
    found = trends(["a.A", "b.B", "c.C"], ChartRange.QUARTER)
    assert set(found) == {"a.a", "b.b", "c.c"}
    assert [point and point.leased for point in found["a.a"][-4:]] == [None, 190, None, 70]
    assert not any(found["c.c"])

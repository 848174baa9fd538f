"""The charts of a pool, as JSON."""

import time

import pytest

from resourcepool.dashboard.charts import drawn
from resourcepool.db.dialect import DbLater
from resourcepool.models import Proxy, Sample
from resourcepool.status.resources.activity import Point
from tests.app.rows import new
from tests.dashboard.test_views import client_with

CHARTS = "/admin/resourcepool/dashboard/charts/"
POOL = {"pool": "resourcepool.Proxy"}


def titles(*points: Point | None) -> list[str]:
    return [chart["title"] for chart in drawn(points)]


def test_there_is_no_chart_where_there_is_nothing_to_see() -> None:
    assert titles(None, Point(0, 0, 0, 0.0, 0)) == []
    assert titles(Point(0, 5, 0, 0.0, 0)) == ["In use"]
    assert titles(Point(1, 5, 2, 0.5, 1)) == ["In use", "Waiting", "Acquired per minute", "Lost or expired"]


def test_it_ends_with_the_latest_minute_and_has_a_time_for_each_value() -> None:
    Sample.objects.create(pool="resourcepool.proxy", minute=DbLater(-130), free=7, leased=3, waiters=2)
    data = client_with("view_proxy").get(CHARTS, {**POOL, "span": "15m"}).json()
    use, waiting = data["charts"][:2]
    assert (use["title"], waiting["title"]) == ("In use", "Waiting")
    leased, capacity = use["series"]
    assert leased["values"][-3:] == [None, 3, None]
    assert capacity["values"][-3:] == [None, 10, None]
    assert len(data["times"]) == len(leased["values"]) == 15
    assert {after - before for before, after in zip(data["times"], data["times"][1:], strict=False)} == {60}
    assert abs(data["times"][-1] - time.time()) < 600


@pytest.mark.parametrize(("span", "points"), [("1h", 60), ("24h", 96), ("nonsense", 60)])
def test_each_time_range_has_its_number_of_points(span: str, points: int) -> None:
    assert len(client_with("view_proxy").get(CHARTS, {**POOL, "span": span}).json()["times"]) == points


@pytest.mark.parametrize("pool", ["testapp.Device", "nowhere", "", "resourcepool.Task"])
def test_only_pools_that_the_user_may_view_have_charts(pool: str) -> None:
    assert client_with("view_proxy").get(CHARTS, {"pool": pool}).status_code == 403


def test_the_page_names_the_address_of_the_charts() -> None:
    new(Proxy)
    client = client_with("view_proxy")
    assert "data-charts" not in client.get("/admin/resourcepool/dashboard/").content.decode()
    Sample.objects.create(pool="resourcepool.proxy", minute=DbLater(-90), free=1)
    page = client.get("/admin/resourcepool/dashboard/?span=24h").content.decode()
    assert f'data-charts="{CHARTS}?pool=resourcepool.Proxy&amp;span=24h"' in page

"""What an operator finds and does at night, and with how many clicks; typing and Enter are not counted."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from resourcepool.models import Event, Proxy, Stream, Task
from resourcepool.signals import EventKind
from tests.admin.conftest import event
from tests.app.rows import columns, hold, several

DASHBOARD, LIST = "/admin/resourcepool/dashboard/", "/admin/resourcepool/proxy/"
LAPTOP, PHONE = (1280, 800), (400, 850)

pytestmark = [pytest.mark.alone, pytest.mark.only("mariadb")]


@pytest.fixture(autouse=True)
def _nothing_stays(transactional_db: None) -> Iterator[None]:
    yield
    for model in (Event, Task, Stream):
        model.objects.all().delete()


class Clicks:
    """Clicks in a window, and counts them."""

    def __init__(self, page: Any, size: tuple[int, int]) -> None:
        self.page, self.count = page, 0
        page.set_viewport_size({"width": size[0], "height": size[1]})

    def click(self, target: Any) -> None:
        target.click()
        self.count += 1


@pytest.fixture(params=[LAPTOP, PHONE], ids=["laptop", "phone"])
def hand(request: Any, window: Callable[..., Any]) -> Clicks:
    return Clicks(window(), request.param)


def test_a_lease_is_revoked_from_the_list_with_one_click(hand: Clicks) -> None:
    rows = several(Proxy, 3)
    for row in rows:
        hold(row, holder=f"crawler-{row.pk}")
    page = hand.page
    page.goto(LIST)
    hand.click(
        page.locator("#result_list tr", has_text=f"crawler-{rows[1].pk}").get_by_role("link", name="Revoke")
    )
    page.locator("#operate-form").wait_for()
    page.keyboard.type("stuck")  # the field has the focus
    page.keyboard.press("Enter")
    page.get_by_text(f"The lease of proxy {rows[1]} was revoked.").wait_for()
    page.locator("#result_list").wait_for()
    assert hand.count == 1
    assert [columns(row)["holder"] for row in rows] == [f"crawler-{rows[0].pk}", "", f"crawler-{rows[2].pk}"]


def test_a_resource_returns_to_service_with_one_click(hand: Clicks) -> None:
    (row,) = several(Proxy, 1)
    Proxy.objects.filter(pk=row.pk).drain("broken", actor="ann")
    hand.page.goto(LIST)
    hand.click(hand.page.get_by_role("button", name="Return to service"))
    hand.page.get_by_text(f"Proxy {row} was returned to service.").wait_for()
    assert (hand.count, columns(row)["in_service"]) == (1, True)


def test_what_happened_yesterday_is_found_with_two_clicks(hand: Clicks) -> None:
    (row,) = several(Proxy, 1)
    event(row, EventKind.REVOKED, ago=86_400, actor="ann", reason="stuck since the deploy", holder="crawler-7")
    for _ in range(120):
        event(row, holder="crawler-8")
    page, yesterday = hand.page, timezone.localtime() - timedelta(days=1)
    page.goto(LIST)
    page.goto(f"{LIST}{row.pk}/change/")
    hand.click(page.locator("#all-activity"))
    if page.viewport_size["width"] < 768:
        assert page.locator("#filter-around").is_hidden(), "filters are folded on a phone"
        page.locator("#changelist-filter > summary").press("Enter")
    page.get_by_label("Around").fill(f"{yesterday:%Y-%m-%dT%H:%M:%S}")
    hand.click(page.locator("#filter-period button"))
    page.get_by_text("ann revoked proxy").wait_for()
    assert page.locator("#result_list tbody tr").count() == 1
    assert hand.count == 2


def test_who_did_it_is_found_by_the_name_of_the_operator(hand: Clicks) -> None:
    (row,) = several(Proxy, 1)
    event(row, EventKind.REVOKED, ago=3_000, actor="maria", reason="stuck", holder="crawler-7")
    for _ in range(60):
        event(row, holder="crawler-8")
    page = hand.page
    page.goto("/admin/resourcepool/event/")
    page.locator("#searchbar").fill("maria")
    page.keyboard.press("Enter")
    page.get_by_text("maria revoked proxy").wait_for()
    assert hand.count == 0

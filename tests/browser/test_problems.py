"""What an operator does at 3 a.m., from the dashboard, in a real browser, with the clicks counted."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from resourcepool.db.dialect import DbLater
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import Event, Proxy, Sample, Stream, Task, Ticket
from resourcepool.taskqueue import submit
from tests.admin.queues.scene import queue_group, server
from tests.app.rows import granted, hold, new, several
from tests.eventually import eventually
from tests.status.locks.conftest import A, B, lock, waits
from tests.waiting.threads import ticket

PAGE = "/admin/resourcepool/dashboard/"
PHONE = {"width": 400, "height": 800}

# Browsers are slow; differences between databases are tested without one.
pytestmark = [pytest.mark.alone, pytest.mark.only("mariadb")]


@pytest.fixture(autouse=True)
def _nothing_stays(transactional_db: None) -> Iterator[None]:
    yield
    for model in (Event, Sample, Ticket, LockRow, Task, Stream):
        model.objects.all().delete()


class Operator:
    """Clicks, and counts the clicks."""

    def __init__(self, page: Any) -> None:
        self.page, self.clicks = page, 0
        page.goto(PAGE)
        page.wait_for_selector(".rp-is-live")

    def click(self, place: Any) -> None:
        self.clicks += 1
        place.click()


@pytest.fixture(params=["laptop", "phone"])
def operator(request: pytest.FixtureRequest, window: Callable[..., Any]) -> Callable[[], Operator]:
    """Return an operator who looks at the dashboard, on a laptop or a telephone."""

    def opened() -> Operator:
        page = window()
        page.set_viewport_size(PHONE if request.param == "phone" else {"width": 1280, "height": 800})
        return Operator(page)

    return opened


def block() -> Task:
    granted(Stream.objects.create(name="oracle"), "web-1", ttl=600)
    submit("oracle", "note", key="req-42")
    Task.objects.update(state="blocked", outcome="disk full")
    return Task.objects.get()


def test_who_holds_17_takes_one_click(operator: Callable[[], Operator]) -> None:
    proxy = new(Proxy)
    hold(proxy, holder="crawler-7")
    at = operator()
    at.click(at.page.get_by_role("link", name=f"{proxy.pk}: "))
    at.page.get_by_text("crawler-7").first.wait_for()
    assert at.clicks == 1


def test_a_square_shows_its_number_to_pointer_and_keyboard(window: Callable[..., Any]) -> None:
    proxy = new(Proxy)
    page = window()
    page.goto(PAGE)
    square = page.locator("#rp0-0")
    shown = "square => getComputedStyle(square, '::after').content"
    assert square.evaluate(shown) == "none"
    square.hover()
    assert square.evaluate(shown).startswith(f'"{proxy.pk}: ')
    page.mouse.move(0, 0)
    page.keyboard.press("Tab")
    square.focus()
    assert square.evaluate(shown).startswith(f'"{proxy.pk}: ')


def test_the_text_of_a_square_is_a_line_and_no_column_of_letters(window: Callable[..., Any]) -> None:
    new(Proxy)
    server(queue_group("orders", 6), "web-1")
    page = window()
    page.goto(PAGE)
    for square in ("#rp0-0", ".rp-servers .rp-cell"):
        page.locator(square).first.hover()
        width = "square => parseFloat(getComputedStyle(square, '::after').width)"
        assert page.locator(square).first.evaluate(width) > 60
        spaces = "square => getComputedStyle(square, '::after').whiteSpace"
        assert page.locator(square).first.evaluate(spaces) == "normal"


def test_a_long_text_of_the_search_does_not_make_the_page_wide(window: Callable[..., Any]) -> None:
    page = window()
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{PAGE}search/?q={'x' * 3_000}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_search_finds_it_without_a_click_and_lives_in_the_url(operator: Callable[[], Operator]) -> None:
    proxy = new(Proxy)
    hold(proxy, holder="crawler-7")
    at = operator()
    box = at.page.get_by_role("searchbox", name="Find")
    box.fill("crawler-7")
    box.press("Enter")
    at.page.get_by_role("heading", name="Holder crawler-7").wait_for()
    assert at.page.url.endswith("?q=crawler-7")
    at.page.reload()
    at.page.get_by_text("Resources that it holds: 1.").wait_for()
    assert at.clicks == 0


def test_a_stream_is_unblocked_with_one_click(operator: Callable[[], Operator]) -> None:
    block()
    at = operator()
    at.click(at.page.get_by_role("button", name="Retry", exact=True))
    at.page.get_by_text("is ready again").wait_for()
    assert at.page.url.endswith(PAGE)
    assert Task.objects.get().state == "ready"
    assert at.clicks == 1


def test_a_deadlock_ends_with_two_clicks_and_a_reason(operator: Callable[[], Operator]) -> None:
    lock("orders", A)
    lock("stock", B)
    waits("lock", "stock", A, waited=900)
    waits("lock", "orders", B, waited=800)
    at = operator()
    at.click(at.page.locator("#rp-critical").get_by_role("link", name="Revoke..", exact=True))
    at.page.get_by_label("Reason").fill("deadlock")
    at.click(at.page.get_by_role("button", name="Revoke"))
    at.page.wait_for_url(f"**{PAGE}")
    eventually(lambda: at.page.get_by_text("wait cycle for").count() == 0, within=20)
    assert at.clicks == 2


def test_why_somebody_waits_takes_one_click(operator: Callable[[], Operator]) -> None:
    hold(new(Proxy), holder="crawler-7")
    ticket(Proxy, holder="crawler-9", seconds=600, asked_at=DbLater(-40))
    at = operator()
    at.click(at.page.locator("#rp-waiting"))
    at.page.get_by_role("row", name="crawler-9").get_by_text("Matching resources: 0 free").wait_for()
    assert at.clicks == 1


def test_an_alarm_is_snoozed_with_one_click_and_a_name(operator: Callable[[], Operator]) -> None:
    block()
    at = operator()
    stream = at.page.locator(".rp-problem", has_text="stream: oracle")
    at.click(stream.get_by_role("button", name="Snooze for an hour"))
    at.page.locator("#rp-snoozed").wait_for()
    assert at.page.locator("#rp-critical .rp-problem", has_text="stream: oracle").count() == 0
    at.page.locator("#rp-snoozed summary").click()
    at.page.get_by_text("by operator, ").wait_for()
    assert at.clicks == 1


def test_what_is_folded_stays_folded_and_what_is_selected_is_not_replaced(window: Callable[..., Any]) -> None:
    block()
    several(Proxy, 2)
    page = window()
    page.goto(PAGE)
    page.locator("#rp-warnings summary").click()
    page.locator("#rp0-more > summary").click()
    said = page.locator(".rp-problem", has_text="stream: oracle").locator("p").first
    said.evaluate("text => getSelection().selectAllChildren(text)")
    page.evaluate("document.getElementById('rp-problems').isTheSame = true")
    hold(Proxy.objects.first(), holder="meanwhile", ttl=600)
    page.wait_for_selector(".rp-grid .rp-leased")
    assert page.evaluate("document.getElementById('rp-problems').isTheSame"), "somebody reads it"
    assert "disk full" in page.evaluate("getSelection().toString()")
    assert page.evaluate("document.getElementById('rp0-more').open"), "it was replaced, and stays open"
    page.evaluate("getSelection().removeAllRanges()")
    is_same = "document.getElementById('rp-problems').isTheSame"
    eventually(lambda: not page.evaluate(is_same), within=20)
    assert not page.evaluate("document.getElementById('rp-warnings').open")
    page.reload()
    assert not page.evaluate("document.getElementById('rp-warnings').open")


def test_a_chart_is_read_by_keyboard_and_as_a_table(window: Callable[..., Any]) -> None:
    new(Proxy)
    for ago in range(90, 900, 60):
        leased = 1 if ago == 90 else 5
        Sample.objects.create(pool="resourcepool.proxy", minute=DbLater(-ago), free=2, leased=leased)
    page = window()
    page.goto(PAGE)
    page.locator("#rp0-more > summary").click()
    chart = page.get_by_role("group", name="In use. Leased: 1 at the end, between 1 and 5")
    chart.focus()
    page.keyboard.press("End")
    legend = chart.locator(".u-legend")
    assert "1" in legend.locator(".u-value").nth(1).inner_text()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    eventually(lambda: legend.locator(".u-value").nth(1).inner_text() == "5", within=20)
    chart.get_by_text("Values as a table").click()
    eventually(lambda: chart.locator(".rp-values tbody tr").count() == 60)  # a script fills it when it opens
    assert chart.locator(".rp-values tbody td").first.inner_text() == "1"

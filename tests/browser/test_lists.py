"""The list of resources in a real browser: layout and countdown."""

import itertools
import re
from collections.abc import Callable
from typing import Any

import pytest

from resourcepool.models import DispenserTask, Event, Proxy, Stream, Task
from resourcepool.signals import EventKind
from resourcepool.taskqueue import submit
from tests.admin.conftest import event
from tests.app.rows import hold, new
from tests.browser.test_dashboard import hide

LIST = "/admin/resourcepool/proxy/"

# Browsers are slow; differences between databases are tested without one.
pytestmark = [pytest.mark.alone, pytest.mark.only("mariadb")]

# By how many pixels the first element overflows.
OVERFLOW = "selector => { const e = document.querySelector(selector); return e.scrollWidth - e.clientWidth }"

# The number of text lines of the first element.
LINES = """selector => {
    const range = document.createRange();
    range.selectNodeContents(document.querySelector(selector));
    return new Set([...range.getClientRects()].map(box => box.top)).size;
}"""


def test_a_whole_row_is_visible_at_any_width(window: Callable[..., Any]) -> None:
    for number in range(3):
        row = new(Proxy, host=f"{'gate.' * 8}example{number}", tags="eu fast residential", country="DE")
        hold(row, holder="crawler-12.internal.example/41234/MainThread/9f3c.12")
        Proxy.objects.filter(pk=row.pk).drain("it will be moved to the other data centre next week")
    page = window()
    for width in (1280, 1024, 375):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(LIST)
        page.locator("#result_list").wait_for()
        assert page.evaluate(OVERFLOW, "html") <= 0, width
        assert page.evaluate(OVERFLOW, "#changelist-form .results") <= 0, width
        for column in ("named", "status_badge", "held_by", "operate"):
            assert page.locator(f".field-{column}").first.is_visible(), width
        page.locator(".field-named a").first.click()
        page.locator("#resourcepool-now").wait_for()
        assert page.evaluate(OVERFLOW, "html") <= 0, width


def test_a_whole_event_is_visible_at_any_width_in_both_languages(window: Callable[..., Any]) -> None:
    columns = {
        "holder": "crawler-12.internal.example/41234/MainThread/9f3c.12",
        "host": "crawler-12.internal.example",
    }
    why = "OSError: [Errno 28] no space left on device: '/u02/oradata/users01.dbf'"
    columns |= {"pid": 4194304, "seconds": 90_061.0, "actor": "anneliese.schmidt"}
    row = DispenserTask(pk=8_941, fence=1_795_403_331_064_567)
    for what in (EventKind.FAILED, EventKind.RETRIED, EventKind.DISCARDED):
        event(row, what, **columns, reason=f"reviews/film-{'0123456789abcdef' * 3}: {why}")
    page = window()
    for language, width in itertools.product(("en", "zh-hans"), (1300, 1024)):
        page.set_viewport_size({"width": width, "height": 800})
        page.set_extra_http_headers({"Accept-Language": language})
        page.goto("/admin/resourcepool/event/")
        page.locator("#result_list").wait_for()
        assert page.evaluate(OVERFLOW, "html") <= 0, (language, width)
        assert page.evaluate(OVERFLOW, "#changelist-form .results") <= 0, (language, width)
        assert page.locator(".field-sentence").first.bounding_box()["width"] >= 300, (language, width)
    Event.objects.all().delete()


def left(page: Any) -> int:
    match = re.search(r"(\d+) s", page.locator(".resourcepool-left").inner_text())
    assert match
    return int(match[1])


@pytest.mark.parametrize("place", ["", "{}/change/"])
def test_the_remaining_time_counts_down_and_pauses_while_the_tab_is_hidden(
    window: Callable[..., Any], place: str
) -> None:
    proxy = new(Proxy)
    hold(proxy, ttl=119)
    page = window()
    page.clock.install()
    page.goto(LIST + place.format(proxy.pk))
    first = left(page)
    page.clock.run_for(10_000)
    second = left(page)
    assert second <= first - 9
    page.clock.set_system_time(0)  # the wall clock changes
    page.clock.run_for(1_000)
    assert second - 60 < left(page) < second
    hide(page, hidden=True)
    third = left(page)
    page.clock.run_for(10_000)
    assert left(page) == third
    hide(page, hidden=False)
    assert left(page) <= third - 9
    page.clock.run_for(120_000)
    over = page.locator(".resourcepool-left.resourcepool-over")
    assert "renewed" in over.inner_text()
    assert "119" not in over.inner_text()


def test_it_works_with_the_keyboard_alone(window: Callable[..., Any]) -> None:
    proxy = new(Proxy)
    hold(proxy, holder="web1")
    page = window()
    page.goto(f"{LIST}{proxy.pk}/change/")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # "Skip to main content"
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "operate-revoke":
            break
    style = "(() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle })()"
    assert page.evaluate(style) != "none"
    page.keyboard.press("Enter")
    page.locator("#operate-form").wait_for()
    page.get_by_label("Reason").focus()
    page.keyboard.type("stuck")
    page.keyboard.press("Enter")
    page.get_by_text(f"The lease of proxy {proxy} was revoked.").wait_for()


def test_a_task_has_room_for_its_outcome_and_two_lines_for_its_time(window: Callable[..., Any]) -> None:
    Stream.objects.create(name="oracle-eu-production")
    for number in range(3):
        submit(
            "oracle-eu-production",
            "CreateTableSpace",
            key=f"req-{number}-{'0123456789abcdef' * 3}",
            lane="instance-7",
        )
    Task.objects.update(
        state="blocked", outcome="OSError: [Errno 28] no space left on device: '/u02/oradata/users01.dbf'"
    )
    page = window()
    page.set_viewport_size({"width": 1300, "height": 800})
    page.goto("/admin/resourcepool/task/")
    page.locator("#result_list").wait_for()
    assert page.evaluate(OVERFLOW, "html") <= 0
    assert page.evaluate(OVERFLOW, "#changelist-form .results") <= 0
    assert page.locator(".field-outcome").first.bounding_box()["width"] >= 150
    assert page.evaluate(LINES, ".field-submitted_at") == 2

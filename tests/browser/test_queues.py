"""Queues on the dashboard and in the admin, in a real browser under a strict Content-Security-Policy."""

from collections.abc import Callable
from typing import Any

import pytest

from resourcepool.models import Queue
from tests.admin.queues.scene import LIST, queue_group, server
from tests.browser.test_lists import OVERFLOW

PAGE = "/admin/resourcepool/dashboard/"

# Browsers are slow; differences between databases are tested without one.
pytestmark = [pytest.mark.alone, pytest.mark.only("mariadb")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_squares_follow_the_moves_and_fit_a_phone(window: Callable[..., Any], scheme: str) -> None:
    orders = queue_group(queues=6)
    server(orders, "A")
    page = window()
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto(PAGE)
    page.locator(".rp-servers .rp-leased").nth(5).wait_for()
    page.locator(".rp-servers .rp-cell").first.focus()
    server(orders, "B")
    page.locator(".rp-servers .rp-draining").nth(2).wait_for()
    assert page.evaluate("document.activeElement.ariaLabel").startswith("q0: owned by A")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/queue/{Queue.objects.order_by('pk')[0].pk}/change/")


def test_a_server_is_drained_with_the_keyboard_alone(window: Callable[..., Any]) -> None:
    orders = queue_group(queues=2)
    first = server(orders, "A")
    server(orders, "B")
    page = window()
    page.goto(PAGE)
    page.get_by_role("link", name=str(first), exact=True).press("Enter")
    page.get_by_role("link", name="Drain", exact=True).press("Enter")
    page.locator("#confirm").press("Enter")
    page.get_by_text(f"1 is draining: {first}.").wait_for()
    assert set(Queue.objects.values_list("req_server__name", flat=True)) == {"B"}


def test_no_list_is_wider_than_a_phone(window: Callable[..., Any]) -> None:
    orders = queue_group(queues=3)
    server(orders, "a-rather-long-name-of-a-server.eu-west-1.internal", labels={"zone": "eu-west-1"})
    server(orders, "B")
    page = window()
    page.set_viewport_size({"width": 375, "height": 800})
    for kind in ("queuegroup", "server", "queue", "move"):
        page.goto(LIST.format(kind))
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, kind
        page.locator("#result_list").wait_for()
        assert page.evaluate(OVERFLOW, "#changelist-form .results") <= 0, kind

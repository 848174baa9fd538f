"""How much room pages take: the dashboard on a laptop; all pages on a phone, also in Chinese."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import models

from resourcepool.dashboard import links
from resourcepool.db.dialect import DbLater
from resourcepool.models import AbstractResource, Proxy, Sample, Stream, Ticket
from resourcepool.resources.registry import resource_models
from resourcepool.taskqueue import NewTask, submit_many
from tests.admin.queues.scene import queue_group, server
from tests.app.models import Device, Ghost
from tests.browser import demo_data, demo_locks, demo_tasks
from tests.browser.server import serve
from tests.browser.test_dashboard import PAGE

LAPTOP, PHONE = {"width": 1366, "height": 768}, {"width": 400, "height": 800}
SCREENS = 2
MORE_POOLS = ("Account", "Licence", "Phone")  # on the table of devices
BUSY = ("resourcepool.proxy", "testapp.phone")  # with waiters

ADMIN = "/admin/resourcepool/"
PAGES = (
    *("dashboard/", "dashboard/waiting/", "dashboard/search/?q=orders", "dashboard/search/?q=crawler2"),
    *("proxy/", "proxy/{proxy}/change/", "proxy/{proxy}/activity/", "proxy/{proxy}/operate/quarantine/"),
    *("proxy/import/", "event/", "stream/", "stream/oracle/change/", "task/", "timer/", "dispenser/"),
    *("lock/", "lock/orders/change/", "lock/orders/operate/revoke-holder/", "semaphorepermit/"),
    *("conditionwaiter/", "channel/", "subscription/", "server/", "queuegroup/"),
)

# Chinese characters become letters as wide as they are, between which a line breaks likewise: no font here has them.
AS_WIDE = """() => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const wide = text => text.replace(/[\u3000-\u9fff\uff00-\uffef]/g, 'W\u200b');
    while (walker.nextNode()) walker.currentNode.data = wide(walker.currentNode.data);
}"""
# What ends beyond the right edge of the window, or is cut off there.
CLIPPED = """() => [...document.querySelectorAll('body *')].filter(one => {
    const box = one.getBoundingClientRect();
    return box.width > 1 && box.right > innerWidth + 1 && !one.closest('thead, .resourcepool-scroll, svg defs, canvas');
}).map(one => one.outerHTML.slice(0, 100))"""

# Browsers are slow; differences between databases are tested without one.
pytestmark = [pytest.mark.alone, pytest.mark.only("mariadb")]


def serve_five_pools(every: float) -> None:
    """Serve the project with three pools more, and without the one that has no table."""
    for name in MORE_POOLS:
        meta = type("Meta", (AbstractResource.Meta,), {"managed": False, "db_table": Device._meta.db_table})
        fields = {
            "id": models.UUIDField(primary_key=True),
            "name": models.CharField(max_length=50),
            "Meta": meta,
        }
        type(name, (AbstractResource,), {**fields, "__module__": Device.__module__})
    links.resource_models = lambda: [model for model in resource_models() if model is not Ghost]
    serve(every)


def fill() -> None:
    """Five pools of forty, two of them with waiters; samples, events; three streams, one of them blocked."""
    demo_data.proxies()
    for number in range(40):
        held = (
            {"holder": f"ci{number}/900/main/1", "fence": 5, "busy_before": DbLater(100)} if number < 25 else {}
        )
        Device.objects.create(name=f"phone {number}", **held)
    labels = [Proxy._meta.label_lower, *(f"testapp.{name.lower()}" for name in ("Device", *MORE_POOLS))]
    for label in labels:
        columns = {"pool": label, "free": 12, "acquired": 9, "waiters": 2, "lost": 1}
        Sample.objects.bulk_create(
            Sample(minute=DbLater(-60 * ago - 10), leased=20 + ago % 7, **columns) for ago in range(1, 60)
        )
    for label in BUSY:
        for ago in (4, 65, 140):
            waiter = {"asked_at": DbLater(-ago), "busy_before": DbLater(60), "holder": f"ci{ago}/12/main/7"}
            Ticket.objects.create(pool=label, **waiter)
    demo_data.story()
    demo_tasks.streams()
    Stream.objects.create(name="orders")
    submit_many("orders", [NewTask("Order", {"n": n}, key=f"order-{n}") for n in range(40)])


@pytest.mark.parametrize("span", ["1h", "24h"])
def test_five_pools_and_three_streams_take_two_screens_of_a_laptop(
    window: Callable[..., Any], span: str
) -> None:
    fill()
    page = window(serving=serve_five_pools)
    page.set_viewport_size(LAPTOP)
    page.goto(f"{PAGE}?span={span}")
    page.locator("#rp0-charts canvas, #rp1-charts canvas").first.wait_for()
    assert page.locator(".rp-pool details[open]").count() == len(BUSY)
    assert page.locator("#rp-streams-part tbody th").count() == 3
    assert page.evaluate("document.documentElement.scrollHeight") <= SCREENS * LAPTOP["height"]


@pytest.mark.parametrize("language", ["en", "zh-Hans"])
def test_no_page_is_clipped_on_a_phone(window: Callable[..., Any], language: str) -> None:
    fill()
    demo_tasks.dispensers()
    demo_tasks.timers()
    demo_locks.fill()
    server(queue_group("orders", 6), "web-1")
    page, clipped = window(), {}
    page.set_viewport_size(PHONE)
    page.set_extra_http_headers({"Accept-Language": language})
    for address in PAGES:
        page.goto(ADMIN + address.format(proxy=Proxy.objects.order_by("pk")[0].pk))
        assert page.evaluate("document.documentElement.lang") == language.lower()
        page.evaluate(AS_WIDE)
        if found := page.evaluate(CLIPPED):
            clipped[address] = found[:3]
    assert clipped == {}

"""Operations in a real browser: find a holder, revoke its lease, quarantine and return a resource."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from resourcepool.exceptions import LeaseLost
from resourcepool.models import Event, Proxy
from tests.app.rows import columns, new, several
from tests.eventually import eventually
from tests.spawned import Spawner

LIST = "/admin/resourcepool/proxy/"
WITH_HISTORY = {"DJANGO_SETTINGS_MODULE": "tests.browser.settings"}

# Browsers are slow; differences between databases are tested without one.
pytestmark = [pytest.mark.alone, pytest.mark.only("mariadb")]


@pytest.fixture(autouse=True)
def _no_history_stays(transactional_db: None) -> Iterator[None]:
    yield
    Event.objects.all().delete()


def crawl(holder: str, ttl: float) -> None:
    """Hold a proxy and print how its lease ends."""
    lost = threading.Event()
    lease = Proxy.pool.acquire(holder=holder, ttl=ttl, on_lost=lambda lease: lost.set())
    assert lease is not None
    print("held", flush=True)
    lease.lost.wait(60)
    print("on_lost ran" if lost.wait(30) else "on_lost did not run", flush=True)
    try:
        lease.ensure_held()
    except LeaseLost:
        print("LeaseLost", flush=True)


def test_an_operator_finds_the_holder_and_revokes_the_lease_and_the_holder_is_notified(
    window: Callable[..., Any], spawn: Spawner
) -> None:
    proxy = new(Proxy, host="wanted.example")
    crawler = spawn(crawl, "crawler-7/stuck", 6.0, **WITH_HISTORY)
    crawler.line("held")
    several(Proxy, 3)
    page = window(**WITH_HISTORY)
    page.goto(LIST)
    page.locator("#searchbar").fill("wanted.example")
    page.locator("#changelist-search").get_by_role("button", name="Search").click()
    page.wait_for_url("**q=wanted.example")
    page.locator("#result_list tbody tr").wait_for()
    assert "crawler-7/stuck" in page.locator(".field-held_by").inner_text()
    page.locator(".field-named a").click()
    now_said = page.locator("#resourcepool-now")
    assert "crawler-7/stuck" in now_said.inner_text()
    page.get_by_role("link", name="Revoke", exact=True).click()
    page.get_by_role("button", name="Revoke").click()
    page.get_by_text("This field is required.").wait_for()
    assert columns(proxy)["holder"] == "crawler-7/stuck", "no lease is revoked without a reason"
    page.get_by_label("Reason").fill("stuck since <b>the deploy</b>")
    page.get_by_role("button", name="Revoke").click()
    page.get_by_text(f"The lease of proxy {proxy} was revoked.").wait_for()
    assert "the next matching request may lease it." in now_said.inner_text()
    crawler.line("on_lost ran")
    crawler.line("LeaseLost")
    eventually(lambda: Event.objects.filter(what="revoked").exists(), within=20)
    page.reload()
    happened = page.locator("#resourcepool-events").inner_text()
    assert "operator revoked" in happened
    assert "stuck since <b>the deploy</b>" in happened


def test_an_operator_quarantines_a_resource_and_returns_it(window: Callable[..., Any]) -> None:
    proxy = new(Proxy)
    page = window()
    page.goto(LIST)
    page.locator(".action-select").check()
    page.get_by_label("Action:").select_option("quarantine")
    page.get_by_role("button", name="Go").click()
    page.get_by_label("Reason").fill("answers with 403")
    page.locator("#operate-form [name=duration]").fill("2h")
    page.get_by_role("button", name="Quarantine").click()
    page.get_by_text(f"Proxy {proxy} was quarantined.").wait_for()
    assert Proxy.pool.acquire(wait=False) is None
    page.locator("#filter-state a", has_text="quarantined").click()
    row = page.locator("#result_list tbody tr")
    assert "answers with 403" in row.inner_text()
    row.locator(".field-named a").click()
    page.get_by_text("It is quarantined for another").first.wait_for()
    page.get_by_role("button", name="Return to service").click()
    page.get_by_text(f"Proxy {proxy} was returned to service.").wait_for()
    lease = Proxy.pool.acquire(wait=False)
    assert lease is not None
    assert lease.pk == proxy.pk
    lease.release()

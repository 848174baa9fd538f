"""The dashboard in a real browser, under a strict Content-Security-Policy."""

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from resourcepool.db.dialect import DbLater
from resourcepool.models import Proxy, Sample
from tests.app.rows import hold, new, several
from tests.browser.server import work
from tests.concurrency.connection_cutter import Wire
from tests.spawned import Spawner

PAGE = "/admin/resourcepool/dashboard/"
LEASED = ".rp-grid .rp-leased"
NO_ANSWER = "Failed to load resource"

# Browsers are slow; differences between databases are tested without one.
pytestmark = [pytest.mark.alone, pytest.mark.only("mariadb")]


@pytest.fixture(autouse=True)
def _no_sample_stays(transactional_db: None) -> Iterator[None]:
    yield
    Sample.objects.all().delete()


def test_it_is_linked_from_the_index_and_obeys_the_policy(window: Callable[..., Any]) -> None:
    several(Proxy, 3)
    for ago in range(90, 900, 60):
        Sample.objects.create(
            pool="resourcepool.proxy", minute=DbLater(-ago), free=2, leased=1, acquired=9, lost=1
        )
    page = window()
    page.goto("/admin/")
    page.get_by_role("link", name="Dashboard", exact=True).first.click()
    page.wait_for_selector(".rp-is-live")
    assert page.locator("#rp0").is_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('.rp-grid')).display") == "flex"
    page.locator("#rp0-more > summary").click()
    page.locator("#rp0-charts canvas").nth(2).wait_for()
    assert page.locator("#rp0-charts canvas").count() == 3, "nobody waited"


def test_it_shows_the_changes_of_twenty_processes(window: Callable[..., Any], spawn: Spawner) -> None:
    several(Proxy, 8)
    page = window()
    page.goto(PAGE)
    page.wait_for_selector(".rp-grid .rp-free")
    assert page.locator(LEASED).count() == 0
    children = [spawn(work, 0.5) for _ in range(5)]
    for child in children:
        child.line("working")
    page.locator(LEASED).nth(5).wait_for()
    page.get_by_text("the first for").wait_for()
    for child in children:
        os.killpg(child.pid, signal.SIGINT)
    page.locator(LEASED).first.wait_for(state="detached")
    assert page.locator(".rp-grid .rp-free").count() == 8


def test_a_cell_keeps_the_focus_and_links_to_its_resource(window: Callable[..., Any]) -> None:
    first, _second = several(Proxy, 2)
    page = window()
    page.goto(PAGE)
    page.locator(".rp-grid .rp-cell").first.focus()
    lease = hold(first, holder="web1")
    page.wait_for_selector(LEASED)
    assert "web1" in page.evaluate("document.activeElement.ariaLabel")
    lease.release()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/proxy/{first.pk}/change/")


def test_it_is_accessible_to_screen_readers(window: Callable[..., Any]) -> None:
    proxy = new(Proxy)
    hold(proxy, holder="web1")
    for ago in range(90, 900, 60):
        Sample.objects.create(pool="resourcepool.proxy", minute=DbLater(-ago), free=2, leased=1)
    page = window()
    page.goto(PAGE)
    page.locator("#rp0-more > summary").click()
    page.get_by_role("group", name="In use. Leased: 1 at the end").wait_for()
    page.get_by_role("group", name="Proxies").get_by_role(
        "link", name=f"{proxy.pk}: {proxy}, leased (web1)"
    ).wait_for()
    page.get_by_role("status").get_by_text("Live").wait_for()
    assert page.locator("#rp-live svg:not([role=img]):not([aria-hidden])").count() == 0


def test_it_pauses_while_its_tab_is_hidden(window: Callable[..., Any]) -> None:
    several(Proxy, 1)
    page = window()
    asked: list[str] = []
    page.goto(PAGE)
    page.wait_for_selector(".rp-is-live")
    hide(page, hidden=True)
    page.wait_for_selector(".rp-is-paused")
    page.wait_for_load_state("networkidle")
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(2_500)  # two and a half refreshes
    assert asked == []
    hide(page, hidden=False)
    page.wait_for_selector(".rp-is-live")
    assert len(asked) > 0


def hide(page: Any, *, hidden: bool) -> None:
    page.evaluate(
        "hidden => { Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});"
        " document.dispatchEvent(new Event('visibilitychange')); }",
        hidden,
    )


def test_it_reports_a_logout(window: Callable[..., Any], tolerated: list[str]) -> None:
    tolerated.append(NO_ANSWER)
    page = window()
    page.goto(PAGE)
    page.context.clear_cookies()
    page.get_by_text("Not live: you are logged out").wait_for()


def test_it_works_without_javascript(window: Callable[..., Any], browser: Any) -> None:
    several(Proxy, 2)
    page = window()
    page.goto(PAGE)
    context = browser.new_context(java_script_enabled=False, storage_state=page.context.storage_state())
    plain = context.new_page()
    plain.goto(page.url)
    assert plain.locator(".rp-grid .rp-free").count() == 2
    assert plain.get_by_text("As of").first.is_visible()


def test_it_stays_when_the_database_goes_away_and_recovers(
    window: Callable[..., Any], database_url: str, tolerated: list[str]
) -> None:
    tolerated.append(NO_ANSWER)
    first, _second = several(Proxy, 2)
    url = urlsplit(database_url)
    host, port = url.hostname or "", url.port or 0
    wire = Wire(host, port)
    login = url.netloc.rpartition("@")[0]
    page = window(DATABASE_URL=url._replace(netloc=f"{login}@127.0.0.1:{wire.port}").geturl())
    page.goto(PAGE)
    page.wait_for_selector(".rp-is-live")
    wire.close()
    page.get_by_text("Not live: no answer from the web server since").wait_for()
    page.wait_for_selector("#rp-live.rp-is-old")
    assert page.locator(".rp-grid .rp-free").count() == 2, "what was known stays"
    hold(first, holder="meanwhile")
    again = Wire(host, port, wire.port)
    page.wait_for_selector(".rp-is-live")
    assert "meanwhile" in page.locator(LEASED).get_attribute("aria-label")
    assert page.locator("#rp-live.rp-is-old").count() == 0
    again.close()

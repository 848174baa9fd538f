"""Events, tickets, samples and jobs: read-only lists."""

import re
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from resourcepool.admin import filters
from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.models import Event, Job, Proxy, Ticket
from resourcepool.signals import EventKind
from tests.admin.conftest import event, sign_in, text
from tests.app.models import Device
from tests.app.rows import new, several

EVENTS = "/admin/resourcepool/event/"

pytestmark = pytest.mark.django_db


def found(client: Client, query: str) -> set[str]:
    answer = client.get(EVENTS + query)
    assert answer.status_code == 200
    return {one.reason for one in answer.context["cl"].result_list}


FOUND = [
    ("", {"a", "b", "c"}),
    ("?pool=resourcepool.proxy", {"a", "b", "c"}),
    ("?pool=testapp.device", set()),
    ("?what=lost", {"b"}),
    ("?what=nonsense", set()),
    ("?pool=%00", set()),
    ("?what=%00", set()),
    ("?who=%00", set()),
    ("?row=%00", set()),
    ("?holder=%00", set()),
    ("?who=craw", {"a"}),
    ("?who=ann", {"b"}),
    ("?who=an", set()),
    ("?past=hour", {"a"}),
    ("?past=day", {"a", "b"}),
    ("?past=week", {"a", "b"}),
    ("?past=aeon", {"a", "b", "c"}),
    ("?q=nowhere", set()),
    ("?q=%27%3B", set()),
]


def test_a_short_lease_is_found_by_its_acquisition_and_by_its_end(viewer: Client) -> None:
    proxy = new(Proxy)
    event(proxy, EventKind.ACQUIRED, reason="long")
    event(proxy, EventKind.RELEASED, reason="its end")
    short = event(proxy, EventKind.RELEASED, reason="short", seconds=0.05, is_whole=True)
    assert found(viewer, "?what=acquired") == {"long", "short"}
    assert found(viewer, "?what=released") == {"its end", "short"}
    shown = text(viewer.get(EVENTS))
    assert shown.count("acquired and released") == 1
    assert "0.05 s" in shown
    assert "acquired and released" in text(viewer.get(f"{EVENTS}{short.pk}/change/"))


@pytest.mark.parametrize(("query", "expected"), FOUND)
def test_what_the_filters_find(viewer: Client, query: str, expected: set[str]) -> None:
    proxy = new(Proxy)
    event(proxy, reason="a", holder="crawler")
    event(proxy, EventKind.LOST, ago=7_200, reason="b", actor="ann")
    event(proxy, EventKind.CHECKED, ago=10 * 86_400, reason="c")
    assert found(viewer, query) == expected


def test_filters_search_the_newest_events_and_a_resource_finds_all_of_its_own(
    viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "NEWEST", 2)
    proxy, other = several(Proxy, 2)
    event(proxy, reason="old")
    event(other, reason="new")
    event(other, reason="newer")
    assert found(viewer, "") == {"new", "newer"}
    assert found(viewer, "?pool=resourcepool.proxy") == {"new", "newer"}
    with CaptureQueriesContext(connection) as queries:
        assert found(viewer, f"?q={proxy.pk}") == {"old"}
    # Without the pool, the database would read all events.
    looked = [query["sql"] for query in queries.captured_queries if "resourcepool_event" in query["sql"]]
    assert looked
    assert all(re.search("pool.? IN", sql) for sql in looked)


@pytest.mark.parametrize("kind", ["event", "job", "proxy", "sample", "ticket"])
def test_an_impossible_key_is_not_found(kind: str) -> None:
    client = sign_in("superuser")
    for key in ("%00", "a%00b", "_00"):
        for page in ("change", "history", "delete"):
            answer = client.get(f"/admin/resourcepool/{kind}/{key}/{page}/")
            assert answer.status_code in (302, 403), page
            assert client.get("/admin/").status_code == 200


@pytest.mark.parametrize("model", [Event, Job, Ticket])
def test_even_a_superuser_changes_nothing(model: Any) -> None:
    client = sign_in("superuser")
    row = event(new(Proxy)) if model is Event else new(model)
    url = f"/admin/resourcepool/{model._meta.model_name}/"
    assert client.post(f"{url}add/", {}).status_code == 403
    assert client.post(f"{url}{row.pk}/change/", {}).status_code == 403
    assert client.post(f"{url}{row.pk}/delete/", {"post": "yes"}).status_code == 403
    client.post(url, {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"})
    assert model.objects.filter(pk=row.pk).exists()
    assert "delete_selected" not in text(client.get(url))


@pytest.mark.parametrize("kind", ["event", "job"])
def test_lists_and_pages_format_durations_and_dates(viewer: Client, kind: str) -> None:
    seconds = 2.061030466000375
    row = event(new(Proxy), seconds=seconds) if kind == "event" else new(Job, seconds=seconds, done_at=DbNow())
    for page in ("", f"{quote(row.pk)}/change/"):
        said = text(viewer.get(f"/admin/resourcepool/{kind}/{page}"))
        assert "2.06 s" in said
        assert "2.0610" not in said
        assert re.search(r">20\d\d-\d\d-\d\d \d\d:\d\d:\d\d<", said)


def test_an_event_links_to_its_resource_if_that_has_a_page(viewer: Client) -> None:
    proxy, device = new(Proxy), new(Device)
    event(proxy)
    event(device)
    event(proxy, row='"><b>')
    page = text(viewer.get(EVENTS))
    assert f'<a href="/admin/resourcepool/proxy/{proxy.pk}/change/">proxy {proxy.pk}</a>' in page
    assert f'<td class="field-page">device {device.pk}</td>' in page
    assert "<b>" not in page


def test_the_ticket_of_a_crashed_process_differs_from_one_that_waits(viewer: Client) -> None:
    new(Ticket, holder="dead", busy_before=DbLater(-5))
    new(Ticket, holder="waiting <b>", busy_before=DbLater(60))
    answer = viewer.get("/admin/resourcepool/ticket/")
    page = text(answer)
    assert page.count('alt="True"') == page.count('alt="False"') == 1
    assert (
        page.index("waiting &lt;b&gt;")
        < page.index('alt="True"')
        < page.index(">dead<")
        < page.index('alt="False"')
    )


def test_the_page_of_a_ticket_shows_all_columns_of_the_list(viewer: Client) -> None:
    row = new(Ticket, holder="web-1/41/main", busy_before=DbLater(60), count=3)
    page = text(viewer.get(f"/admin/resourcepool/ticket/{row.pk}/change/"))
    for said in ("testapp.nothing", "web-1/41/main", 'alt="True"', ">3<"):
        assert said in page


@pytest.mark.parametrize(
    ("kind", "term", "count"),
    [("ticket", "web-1", 1), ("ticket", "41", 0), ("job", "check a", 1), ("job", "x", 0)],
)
def test_a_search_finds_matching_rows(viewer: Client, kind: str, term: str, count: int) -> None:
    for name in ("web-1", "web-2"):
        new(Ticket, holder=f"{name}/41/main")
    for name in ("check a.B", "sweep"):
        new(Job, name=name)
    rows = viewer.get(f"/admin/resourcepool/{kind}/", {"q": term}).context["cl"].result_list
    assert len(rows) == count

"""The list of resources: its columns, filters, search and number of queries."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib import admin
from django.core.paginator import EmptyPage
from django.test import Client

from resourcepool.admin import ResourceAdmin, paging
from resourcepool.admin.paging import CappedCount, CappedPaginator
from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.models import Proxy
from resourcepool.resources.state import State
from resourcepool.signals import EventKind
from resourcepool.status.resources.pools import in_state
from tests.admin.conftest import event, lease, text
from tests.app.models import Device
from tests.app.rows import change, new, several

LIST = "/admin/resourcepool/proxy/"

pytestmark = pytest.mark.django_db


def shown(client: Client, query: str) -> set[int]:
    """Return the primary keys on the page of ``query``."""
    answer = client.get(f"{LIST}{query}")
    assert answer.status_code == 200, answer
    return {row.pk for row in answer.context["cl"].result_list}


def test_a_row_shows_holder_host_start_and_remaining_time(viewer: Client, proxy: Proxy) -> None:
    lease(proxy, "crawler 7", seconds=1_025)
    change(proxy, tags="eu fast", verdict="bad")
    event(proxy, ago=600, host="web1", pid=41)
    page = text(viewer.get(LIST))
    for said in (
        *("crawler 7", "<small>web1 · for 10 min, since", "17 min", "eu fast", "check: bad"),
        '<span class="resourcepool-state busy">',
    ):
        assert said in page
    assert "field-fence" not in page


def test_a_row_out_of_service_shows_the_reason(viewer: Client, proxy: Proxy) -> None:
    Proxy.objects.filter(pk=proxy.pk).drain("smells <b>odd</b>")
    assert "smells &lt;b&gt;odd" in text(viewer.get(LIST))


def test_filters_of_a_short_list_show_counts_and_those_of_a_long_one_on_request(
    viewer: Client, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    Proxy.objects.filter(pk=new(Proxy, host="b.example").pk).drain("x")
    page = text(viewer.get(LIST))
    for said in ("free (1)", "out of service (1)", "never checked (2)"):
        assert said in page
    assert "leased (0)" not in page
    assert 'href="?state=leased"' not in page, "no row has this state"
    monkeypatch.setattr(paging, "MAX_COUNTED", 1)
    assert "free (" not in text(viewer.get(LIST))
    assert "free (1)" in text(viewer.get(f"{LIST}?_facets=True"))


def test_a_row_out_of_service_shows_by_whom_why_and_until_when(viewer: Client, proxy: Proxy) -> None:
    Proxy.objects.filter(pk=proxy.pk).quarantine("banned", 600, actor="maria")
    proxy.refresh_from_db()
    event(proxy, EventKind.QUARANTINED, actor="maria", fence=proxy.fence - 1)
    event(proxy, EventKind.QUARANTINED, actor="ann", fence=proxy.fence - 3)
    page = text(viewer.get(LIST))
    assert "by maria: banned" in page
    assert "ends in" in page


def test_each_row_has_the_buttons_of_its_state(operator: Client, proxy: Proxy) -> None:
    held = new(Proxy, host="b.example")
    lease(held)
    page = text(operator.get(f"{LIST}?q=example"))
    back = "?next=%2Fadmin%2Fresourcepool%2Fproxy%2F%3Fq%3Dexample"
    assert f'href="{LIST}{held.pk}/operate/revoke/{back}"' in page
    assert f"{LIST}{proxy.pk}/operate/revoke/" not in page
    assert f"{LIST}{proxy.pk}/operate/drain/{back}" in page
    Proxy.objects.filter(pk__in=[held.pk, proxy.pk]).drain("move")
    page = text(operator.get(f"{LIST}?q=example"))
    assert "/operate/drain/" not in page, "one is draining, the other is drained"
    assert f'href="{LIST}{held.pk}/operate/revoke/{back}"' in page


def test_an_operation_from_a_row_leads_back_to_the_list(operator: Client, proxy: Proxy) -> None:
    for there, expected in (
        (f"{LIST}?q=a", f"{LIST}?q=a"),
        ("https://evil.example/", f"{LIST}{proxy.pk}/change/"),
    ):
        url = f"{LIST}{proxy.pk}/operate/drain/?{urlencode({'next': there})}"
        answer = operator.post(url, {"confirmed": "yes", "reason": "r"})
        assert answer["Location"] == expected


def test_an_expired_lease_differs_from_a_running_one(viewer: Client, proxy: Proxy) -> None:
    lease(proxy, "crawler 7", seconds=-5)
    page = text(viewer.get(LIST))
    assert "crawler 7" in page
    assert "expired, not released" in page
    assert "data-left" not in page


def test_each_row_shows_the_start_of_its_own_lease(viewer: Client) -> None:
    rows = several(Proxy, 3)
    for row, host in zip(rows, ("alpha", "beta", ""), strict=True):
        lease(row, "crawler")
        if host:
            event(row, host=host)
    found = {row.pk: row.begun for row in viewer.get(LIST).context["cl"].result_list}
    assert [found[row.pk] and found[row.pk].host for row in rows] == ["alpha", "beta", None]


def test_without_a_history_the_start_is_unknown(viewer: Client, proxy: Proxy) -> None:
    lease(proxy, "web7/41/main/ab.1")
    page = text(viewer.get(LIST))
    assert "web7/41/main/ab.1" in page
    assert "since" not in page.partition('id="result_list"')[2].partition("</table>")[0]


def test_the_start_of_an_older_lease_is_not_shown(viewer: Client, proxy: Proxy) -> None:
    lease(proxy, "first")
    event(proxy, host="old")
    lease(proxy, "second")
    assert "<small>old" not in text(viewer.get(LIST))


def test_the_filter_by_state_agrees_with_the_states(viewer: Client) -> None:
    free, leased, draining, out = several(Proxy, 4)
    lease(leased)
    lease(draining)
    Proxy.objects.filter(pk__in=[draining.pk, out.pk]).drain("x")
    assert shown(viewer, "?state=free") == {free.pk}
    assert shown(viewer, "?state=held") == {leased.pk, draining.pk}
    for state in State:
        wanted = set(Proxy.objects.filter(in_state(state)).values_list("pk", flat=True))
        assert shown(viewer, f"?state={state.value}") == wanted


@pytest.mark.parametrize(
    ("state", "act"),
    [
        ("quarantined", lambda rows: rows.quarantine("banned", 600)),
        ("reserved", lambda rows: rows.reserve("ann", "tests")),
        ("retired", lambda rows: rows.retire()),
    ],
)
def test_a_resource_that_goes_away_after_its_lease_is_found_by_both_states(
    viewer: Client, state: str, act: Any
) -> None:
    held, away, _free = several(Proxy, 3)
    lease(held)
    act(Proxy.objects.filter(pk__in=[held.pk, away.pk]))
    assert shown(viewer, f"?state={state}") == {held.pk, away.pk}
    assert shown(viewer, "?state=draining") == {held.pk}
    assert f"{state} after its lease" in text(viewer.get(f"{LIST}?state=draining"))
    change(held, busy_before=DbLater(-1), holder="")
    assert shown(viewer, f"?state={state}") == {held.pk, away.pk}
    assert shown(viewer, "?state=out") == shown(viewer, "?state=draining") == set()


FOUND = [
    ("?held_by=web1", {"mine"}),
    ("?held_by=eb1", set()),
    ("?on_host=web1", {"mine"}),
    ("?on_host=web", set()),
    ("?tag=eu", {"mine", "tagged"}),
    ("?tag=eu+fast", {"tagged"}),
    ("?tag=e", set()),
    ("?tag=%3Cb%3E", set()),
    ("?tag=%00", set()),
    ("?held_by=%25", set()),
    ("?in_country=de", {"tagged"}),
    ("?q=needle", {"tagged"}),
    ("?q=web1", {"mine"}),
    ("?verdict=bad", {"tagged"}),
    ("?verdict=never", {"mine"}),
    ("?verdict=nonsense", {"mine", "tagged"}),
    ("?state=nonsense", {"mine", "tagged"}),
    ("?tag=eu&state=free", {"tagged"}),
]


@pytest.mark.parametrize(("query", "expected"), FOUND)
def test_filters_and_search(viewer: Client, query: str, expected: set[str]) -> None:
    rows = {
        "mine": new(Proxy, tags="eu"),
        "tagged": new(
            Proxy, tags="eu fast", country="DE", host="needle.example", verdict="bad", checked_at=DbNow()
        ),
    }
    lease(rows["mine"])
    assert shown(viewer, query) == {rows[name].pk for name in expected}


def test_the_filter_by_host_finds_custom_holders(viewer: Client) -> None:
    here, there = several(Proxy, 2)
    for row, host in ((here, "web1"), (there, "web2")):
        lease(row, "crawler-1")
        event(row, host=host)
    assert shown(viewer, "?on_host=web1") == {here.pk}


@pytest.mark.parametrize(
    "term",
    [
        *("{pk}", " {pk} ", "10.0.0.17:3128", "http://10.0.0.17:3128", "http://joe:secret@10.0.0.17:3128"),
        "http://joe:***@10.0.0.17:3128",
    ],
)
def test_the_search_finds_a_resource_by_id_or_full_address(viewer: Client, term: str) -> None:
    proxy = new(Proxy, host="10.0.0.17", port=3128, username="joe")
    new(Proxy, host="10.0.0.17", port=3129, username="joe", tags=str(proxy.pk))
    new(Proxy, host=f"h{proxy.pk}.example", port=3128)
    assert shown(viewer, "?" + urlencode({"q": term.format(pk=proxy.pk)})) == {proxy.pk}


def test_a_number_that_is_no_key_is_searched_as_text(viewer: Client) -> None:
    proxy = new(Proxy, host="h987654321.example")
    assert shown(viewer, "?q=987654321") == {proxy.pk}
    assert shown(viewer, f"?q={'9' * 40}") == set()


def test_the_search_stays_within_the_filters(viewer: Client) -> None:
    proxy = new(Proxy)
    assert shown(viewer, f"?q={proxy.pk}&state=held") == set()


def test_a_row_begins_with_the_key_that_logs_and_commands_use(viewer: Client, proxy: Proxy) -> None:
    assert f'><span class="resourcepool-address">{proxy.pk}: http://joe@a.example:80</span></a>' in text(
        viewer.get(LIST)
    )


def test_a_text_filter_keeps_the_others_and_escapes_its_text(viewer: Client) -> None:
    page = text(viewer.get(f"{LIST}?state=free&tag=%22%3E%3Cscript%3E&q=a"))
    assert '<input type="hidden" name="state" value="free">' in page
    assert (
        "<script>"
        not in page.replace("</script>", "").replace('<script src="', "").split("filter-tag")[1][:400]
    )
    assert 'value="&quot;&gt;&lt;script&gt;"' in page


class TestPages:
    def test_end_at_the_cap_and_show_that_there_are_more(
        self, viewer: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(paging, "MAX_ROWS", 120)
        rows = several(Proxy, 130)
        page = text(viewer.get(LIST))
        assert "120+ proxies" in page
        seen = shown(viewer, "") | shown(viewer, "?p=2") | shown(viewer, "?p=3")
        assert seen == {row.pk for row in rows[-120:]}
        assert len(shown(viewer, "?p=3")) == 20
        assert viewer.get(f"{LIST}?p=4").status_code == 302

    def test_read_no_more_than_the_cap(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(paging, "MAX_ROWS", 3)
        several(Proxy, 6)
        assert len(CappedPaginator(Proxy.objects.order_by("pk"), 50).keys) == 4

    def test_below_the_cap_are_counted(self, viewer: Client) -> None:
        several(Proxy, 51)
        assert "51 proxies" in text(viewer.get(LIST))
        assert len(shown(viewer, "?p=2")) == 1

    def test_of_nothing(self) -> None:
        pages = CappedPaginator(Proxy.objects.order_by("pk"), 50)
        assert (pages.count, pages.num_pages, list(pages.page(1))) == (0, 1, [])
        with pytest.raises(EmptyPage):
            pages.page(2)

    @pytest.mark.parametrize(("count", "said"), [(0, "0"), (10_000, "10000"), (10_001, "10,000+")])
    def test_format_the_count(self, count: int, said: str) -> None:
        assert str(CappedCount(count)) == said


def test_the_list_of_another_kind_of_resource_works_the_same(rf: Any, admin_user: Any) -> None:
    site = admin.AdminSite("other")
    site.register(Device, ResourceAdmin)
    lease(device := new(Device))
    request = rf.get("/")
    request.user = admin_user
    found = site._registry[Device].get_changelist_instance(request)
    assert [row.pk for row in found.result_list] == [device.pk]
    assert {name.split("_")[0] for name in site._registry[Device].get_actions(request)} >= {"revoke", "drain"}


@pytest.mark.parametrize("name", ["q", "tag"])
def test_a_search_with_too_many_words_finds_nothing(administrator: Client, name: str) -> None:
    new(Proxy)
    answer = administrator.get("/admin/resourcepool/proxy/", {name: " ".join("w" for _ in range(1_100))})
    assert answer.status_code == 200
    assert answer.context["cl"].result_count == 0

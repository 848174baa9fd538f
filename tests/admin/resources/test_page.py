"""The page of a resource: state, operations and activity."""

from typing import Any

import pytest
from django.test import Client

from resourcepool.admin.events import EventAdmin
from resourcepool.db.dialect import DbLater
from resourcepool.models import Event, Proxy
from resourcepool.operations import OPERATIONS
from resourcepool.signals import EventKind
from resourcepool.status.times import format_datetime
from tests.admin.conftest import event, lease, text
from tests.app.rows import change, columns, new

LIST = "/admin/resourcepool/proxy/"

pytestmark = pytest.mark.django_db


def url(row: Proxy, page: str = "change") -> str:
    return f"{LIST}{row.pk}/{page}/"


def test_the_page_shows_state_and_activity(operator: Client, proxy: Proxy) -> None:
    lease(proxy, "crawler <7>")
    event(proxy, ago=120, host="web1", pid=41)
    event(proxy, EventKind.CHECKED, reason="ok <b>", seconds=0.25, actor="ann")
    event(new(Proxy), EventKind.LEAKED, reason="of another one")
    page = text(operator.get(url(proxy)))
    for said in (*("crawler &lt;7&gt;", "web1 pid 41", "2 min ago", "ok &lt;b&gt;", "0.25 s"),):
        assert said in page
    assert "of another one" not in page
    for name in ("revoke", "quarantine", "drain", "reserve"):
        assert f'id="operate-{name}" href="{url(proxy, f"operate/{name}")}"' in page
    assert (
        page.index('id="operate-revoke"')
        < page.index("resourcepool-events")
        < page.index("resourcepool-settings")
    )
    for name in ("busy_before", "fence", "holder", "in_service", "strikes"):
        assert f"field-{name}" not in page, "the state is shown once, in sentences"


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "web1 acquired proxy {pk} and handed it over to the next waiter"),
        ("zh-hans", "web1 获取了代理 {pk} 并移交给下一个等待者"),
    ],
)
def test_a_short_lease_is_one_sentence(operator: Client, proxy: Proxy, language: str, said: str) -> None:
    event(proxy, EventKind.HANDED_OVER, seconds=3_600, is_whole=True, holder="web1")
    made = Event.objects.get()
    page = text(operator.get(url(proxy, "activity"), headers={"accept-language": language}))
    assert said.format(pk=proxy.pk) in page
    assert format_datetime(made.at) in page


@pytest.mark.parametrize(
    ("status", "in_service", "offered"),
    [
        ("in_service", True, {"quarantine", "drain", "reserve", "check"}),
        ("out_of_service", False, {"return_to_service", "reserve"}),
        ("retired", False, {"return_to_service", "drain", "reserve"}),
    ],
)
@pytest.mark.parametrize("is_checked", [True, False])
def test_only_applicable_operations_are_offered(
    operator: Client,
    proxy: Proxy,
    settings: Any,
    status: str,
    in_service: bool,
    offered: set[str],
    is_checked: bool,
) -> None:
    change(proxy, status=status, in_service=in_service)
    checks = {"resourcepool.Proxy": {"checker": "resourcepool.checks.none"}} if is_checked else {}
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": checks}
    page = text(operator.get(url(proxy)))
    expected = offered if is_checked else offered - {"check"}
    assert {name for name in OPERATIONS if f'id="operate-{name}"' in page} == expected


@pytest.mark.parametrize("name", ["change", "activity"])
def test_the_heading_names_the_resource(viewer: Client, proxy: Proxy, name: str) -> None:
    assert f"Proxy {proxy.pk}: http://joe@a.example:80</h" in text(viewer.get(url(proxy, name)))


def over(proxy: Proxy) -> None:
    """Quarantine it, and let the time pass."""
    Proxy.objects.filter(pk=proxy.pk).quarantine("vendor has it", 600)
    change(proxy, busy_before=DbLater(-1), until=DbLater(-1))


@pytest.mark.parametrize("page", ["", "{pk}/change/", "export"])
def test_an_ended_quarantine_is_not_shown(operator: Client, proxy: Proxy, page: str) -> None:
    over(proxy)
    lease(proxy, "crawler <7>")
    if page == "export":
        sent = operator.post(LIST, {"action": "export", "_selected_action": [proxy.pk]})
        shown = b"".join(sent.streaming_content).decode()  # type: ignore[attr-defined]
        assert "leased" in shown
        assert "quarantined" not in shown
    else:
        shown = text(operator.get(LIST + page.format(pk=proxy.pk)))
        assert "crawler &lt;7&gt;" in shown
    assert "vendor has it" not in shown


def test_a_running_quarantine_is_shown_with_status_reason_and_end(viewer: Client, proxy: Proxy) -> None:
    Proxy.objects.filter(pk=proxy.pk).quarantine("vendor has it", 600)
    page = text(viewer.get(url(proxy)))
    assert page.count("vendor has it") == 1
    assert "It is quarantined for another" in page


def test_viewers_get_no_buttons(viewer: Client, proxy: Proxy) -> None:
    page = text(viewer.get(url(proxy)))
    assert "It is free: the next matching request may lease it." in page
    assert 'id="operate-' not in page


def test_the_page_shows_the_last_five_events_and_links_to_all(
    viewer: Client, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EventAdmin, "list_per_page", 6)
    for number in range(8):
        event(proxy, fence=number // 2, reason=f"event {number}.")
    answer = viewer.get(url(proxy))
    assert [one.reason for one in answer.context["events"]] == [f"event {n}." for n in (7, 6, 5, 4, 3)]
    seen = []
    for page in (1, 2):
        rows = viewer.get(f"{answer.context['all_url']}?p={page}").context["cl"].result_list
        seen += [one.reason for one in rows]
    assert seen == [f"event {number}." for number in reversed(range(8))]


def test_the_loss_of_a_revoked_lease_names_the_operator(viewer: Client, proxy: Proxy) -> None:
    lease(proxy, "crawler 7")
    event(proxy, EventKind.REVOKED, actor="maria", reason="stuck since the deploy")
    event(proxy, EventKind.LOST)
    said = f"crawler 7 lost proxy {proxy.pk}: maria revoked it: stuck since the deploy"
    for page in (url(proxy), url(proxy, "activity"), "/admin/resourcepool/event/"):
        assert said in text(viewer.get(page))


LEASE: dict[str, Any] = {
    "busy_before": "2001-01-01",
    "busy_before_0": "2001-01-01",
    "busy_before_1": "00:00",
    "fence": "0",
    "holder": "me",
    "in_service": "",
    "status": "retired",
    "until": "",
    "reason": "x",
    "verdict": "ok",
}


def test_no_form_can_change_a_lease_or_a_state(administrator: Client, proxy: Proxy) -> None:
    lease(proxy)
    before = columns(proxy)
    entered = {"scheme": "http", "host": "a.example", "port": 80, "username": "joe", "weight": 1, "notes": "n"}
    assert administrator.post(url(proxy), {**entered, "country": "", "tags": "", **LEASE}).status_code == 302
    assert columns(proxy) == {**before, "notes": "n"}


def test_a_page_has_no_script_and_no_style_of_its_own(operator: Client, proxy: Proxy) -> None:
    for page in (LIST, url(proxy), url(proxy, "activity"), url(proxy, "operate/quarantine")):
        said = text(operator.get(page))
        assert "<style" not in said
        assert " style=" not in said
        assert " onclick=" not in said
        for tag in said.split("<script")[1:]:
            assert " src=" in tag.split(">")[0], tag[:200]

"""The search: one box, in the URL; answers with links and buttons."""

import html
import re

from django.contrib.auth.models import User
from django.test import Client

from resourcepool.db.dialect import DbLater
from resourcepool.models import Event, Proxy, Stream, Task
from resourcepool.taskqueue import submit
from tests.admin.queues.scene import queue_group, server
from tests.app.models import Device
from tests.app.rows import granted, hold, new
from tests.dashboard.test_views import client_with, text_of
from tests.status.locks.conftest import A, B, lock, waits
from tests.waiting.threads import ticket

SEARCH = "/admin/resourcepool/dashboard/search/"
DASHBOARD = "/admin/resourcepool/dashboard/"


def answered(client: Client, text: str) -> str:
    answer = client.get(SEARCH, {"q": text})
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_the_box_is_in_the_header_of_the_dashboard_and_of_its_own_page() -> None:
    client = client_with(is_superuser=True)
    for address in (DASHBOARD, SEARCH, f"{DASHBOARD}waiting/"):
        header = text_of(client, address).split("</header>")[0]
        assert f'action="{SEARCH}"' in header
        assert 'name="q"' in header


def test_a_number_is_answered_with_holder_link_and_buttons() -> None:
    proxy = new(Proxy)
    hold(proxy, holder="crawler-7")
    text = answered(client_with(is_superuser=True), str(proxy.pk))
    assert "held by: crawler-7" in text
    assert f'href="/admin/resourcepool/proxy/{proxy.pk}/change/"' in text
    assert f"/admin/resourcepool/proxy/{proxy.pk}/operate/revoke/?next=" in text
    assert f'value="{proxy.pk}"' in text, "the text stays in the box"


def test_what_a_holder_holds_can_be_revoked_there_and_is_not_quarantined_again() -> None:
    proxy = new(Proxy)
    hold(proxy, holder="crawler-7")
    Proxy.objects.filter(pk=proxy.pk).drain("move")
    text = answered(client_with("view_proxy"), "crawler-7")
    assert "Resources that it holds: 1." in text
    assert "/operate/" not in text, "who may only look gets no buttons"
    User.objects.all().delete()
    text = answered(client_with("view_proxy", "operate_proxy"), "crawler-7")
    assert f"/proxy/{proxy.pk}/operate/revoke/" in text
    assert f"/proxy/{proxy.pk}/operate/quarantine/" not in text


def test_a_task_is_retried_by_one_press() -> None:
    Stream.objects.create(name="oracle")
    submit("oracle", "note", key="req-42")
    Task.objects.update(state="blocked", outcome="disk full")
    text = answered(client_with(is_superuser=True), "req-42")
    assert f'formaction="/admin/resourcepool/task/{Task.objects.get().pk}/operate/retry/?next=' in text


def test_nothing_found_and_nothing_asked_are_answered_in_words() -> None:
    client = client_with("view_proxy")
    assert "Nothing that you may view is named “nowhere” or contains it." in answered(client, "nowhere")
    assert "Enter what you have at hand" in answered(client, "")


def test_what_the_user_may_not_view_is_not_found() -> None:
    new(Device, name="secret-phone")
    assert "/device/" not in answered(client_with("view_proxy"), "secret-phone")


def test_every_link_of_an_answer_and_of_the_dashboard_opens() -> None:
    proxy = new(Proxy)
    hold(proxy, holder="crawler-7")
    Event.objects.create(at=DbLater(-120), what="drained", pool="resourcepool.proxy", row="17", actor="alice")
    lock("orders", A)
    waits("lock", "orders", B, waited=7_200)
    ticket(Proxy)
    submit(Stream.objects.create(name="oracle").name, "note", key="req-42")
    Task.objects.update(state="blocked", outcome="disk full")
    server(queue_group("mails", 2), "A")
    client = client_with(is_superuser=True)
    pages = [f"{SEARCH}?q={text}" for text in ("alice", "crawler-7", "oracle", "orders", "mails", proxy.pk)]
    for page in (DASHBOARD, *pages):
        for address in sorted({*re.findall(r' href="(/admin/[^"]*)"', text_of(client, page))}):
            assert client.get(html.unescape(address)).status_code == 200, address


def test_an_operator_leads_to_all_that_they_did() -> None:
    Event.objects.create(at=DbLater(-120), what="drained", pool="resourcepool.proxy", row="17", actor="alice")
    client = client_with(is_superuser=True)
    (address,) = re.findall(r'href="(/admin/resourcepool/event/[^"]*)"', answered(client, "Alice"))
    assert address == "/admin/resourcepool/event/?who=alice"
    assert "alice took proxy" in text_of(client, address)


def test_a_blocked_stream_offers_to_retry_or_discard_its_task() -> None:
    Stream.objects.create(name="oracle")
    granted(Stream.objects.get(), "web-1")
    submit("oracle", "note", key="req-42")
    Task.objects.update(state="blocked", outcome="disk full")
    text = answered(client_with(is_superuser=True), "stream: oracle")
    page = f"/admin/resourcepool/task/{Task.objects.get().pk}/operate"
    assert f"{page}/retry/" in text
    assert f"{page}/discard/" in text


def test_it_is_for_staff_and_read_only() -> None:
    assert Client().get(SEARCH)["Location"].startswith("/admin/login/")
    assert client_with("view_proxy").post(SEARCH).status_code == 405

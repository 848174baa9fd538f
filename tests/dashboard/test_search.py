"""The search: one box, in the URL; answers with links and buttons."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from resourcepool.models import Event, Proxy, Stream, Task
from resourcepool.taskqueue import submit
from tests.app.models import Device
from tests.app.rows import hold, new
from tests.dashboard.test_views import HOSTILE, client_with, text_of

SEARCH = "/admin/resourcepool/dashboard/search/"
DASHBOARD = "/admin/resourcepool/dashboard/"


@pytest.fixture(autouse=True)
def _nobody_stays() -> Any:
    yield
    for model in (Event, User):
        model.objects.all().delete()


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
    assert "Held by crawler-7; expires in" in text
    assert f'href="/admin/resourcepool/proxy/{proxy.pk}/change/"' in text
    assert f"/admin/resourcepool/proxy/{proxy.pk}/operate/revoke/?next=" in text
    assert f'value="{proxy.pk}"' in text, "the text stays in the box"


def test_who_may_only_look_gets_no_buttons() -> None:
    proxy = new(Proxy)
    hold(proxy, holder="crawler-7")
    text = answered(client_with("view_proxy"), "crawler-7")
    assert "It holds 1 resource." in text
    assert "/operate/" not in text


def test_what_a_holder_holds_can_be_revoked_there() -> None:
    proxy = new(Proxy)
    hold(proxy, holder="crawler-7")
    text = answered(client_with("view_proxy", "operate_proxy"), "crawler-7")
    assert f"/admin/resourcepool/proxy/{proxy.pk}/operate/revoke/?next=" in text


def test_what_a_holder_is_losing_anyway_is_not_quarantined_again() -> None:
    proxy = new(Proxy)
    hold(proxy, holder="crawler-7")
    Proxy.objects.filter(pk=proxy.pk).drain("move")
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


def test_hostile_text_is_shown_as_text() -> None:
    new(Proxy, username=HOSTILE)
    hold(new(Proxy), holder=HOSTILE)
    text = answered(client_with(is_superuser=True), HOSTILE)
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text


def test_it_is_for_staff_and_read_only() -> None:
    assert Client().get(SEARCH)["Location"].startswith("/admin/login/")
    assert client_with("view_proxy").post(SEARCH).status_code == 405

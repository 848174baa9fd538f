"""The page of all waiters."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from resourcepool.db.dialect import DbLater
from resourcepool.models import Proxy
from resourcepool.status.resources import waiting
from tests.app.models import Device
from tests.app.rows import hold, new
from tests.dashboard.test_views import HOSTILE, client_with, text_of
from tests.status.locks.conftest import A, B, lock, stands, waits
from tests.waiting.threads import ticket

WAITING = "/admin/resourcepool/dashboard/waiting/"


def test_it_shows_since_when_the_place_and_why() -> None:
    hold(new(Proxy))
    ticket(Proxy, holder="crawler-9", asked_at=DbLater(-130))
    text = text_of(client_with("view_proxy"), WAITING)
    for said in (
        "crawler-9",
        "2 min",
        "Matching resources: 0 free",
        "1 waiter, the longest wait first.",
    ):
        assert said in text


def test_a_waiter_for_a_lock_has_the_operations_on_it_beside_it() -> None:
    lock("orders", A)
    waits("lock", "orders", B)
    text = text_of(client_with(is_superuser=True), WAITING)
    assert 'href="/admin/resourcepool/lock/orders/change/"' in text
    assert "/admin/resourcepool/lock/orders/operate/revoke/" in text
    assert "/operate/" not in text_of(reader(), WAITING)


def test_a_barrier_can_be_removed_there() -> None:
    stands("import done", A)
    waits("barrier", "import done", B)
    client = client_with(is_superuser=True)
    for address in (WAITING, "/admin/resourcepool/dashboard/search/?q=import done"):
        (url,) = re.findall(r'href="([^"]+/barrier/[^"]+/operate/remove/[^"]*)"', text_of(client, address))
        assert "Remove (and release its waiters)" in text_of(client, url)


def reader() -> Client:
    User.objects.all().delete()
    return client_with("view_lock")


def test_only_lines_that_the_user_may_view_are_shown() -> None:
    ticket(Device, holder="secret-holder")
    client = client_with("view_proxy")
    assert "No waiters." in text_of(client, WAITING)
    assert "No waiters." in text_of(client, f"{WAITING}?of=testapp.Device")
    assert Client().get(WAITING).status_code == 302
    User.objects.all().delete()
    assert client_with().get(WAITING).status_code == 403


def test_pages_and_one_line_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PER_PAGE", 1)
    for ago in (30, 20):
        ticket(Proxy, asked_at=DbLater(-ago))
    client = client_with("view_proxy")
    first = text_of(client, f"{WAITING}?of=resourcepool.Proxy")
    assert "2 waiters for resourcepool.Proxy." in first
    assert (
        'id="rp-later" href="/admin/resourcepool/dashboard/waiting/?of=resourcepool.Proxy&amp;page=2"' in first
    )
    assert 'id="rp-earlier"' not in first
    second = text_of(client, f"{WAITING}?page=2")
    assert 'id="rp-earlier"' in second
    assert 'id="rp-later"' not in second


@pytest.mark.parametrize(
    "query", ["page=0", "page=x", "page=99999", f"of={HOSTILE}", "of=lock", "of=lock a%00b"]
)
def test_any_query_is_answered(query: str) -> None:
    ticket(Proxy, holder=HOSTILE)
    text = text_of(client_with(is_superuser=True), f"{WAITING}?{query}")
    assert HOSTILE not in text

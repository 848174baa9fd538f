"""Leaks in the admin: acknowledging one ends its alarm."""

from typing import Any

import pytest
from django.test import Client

from resourcepool.history.recorder import recorder
from resourcepool.models import Proxy
from resourcepool.signals import EventKind
from tests.admin.conftest import event, lease, sign_in, text
from tests.admin.resources.test_operations import do, url
from tests.app.rows import several

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def rows(settings: Any) -> list[Proxy]:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY": True}
    found: list[Proxy] = several(Proxy, 3)
    for row in found[:2]:
        lease(row)
    event(found[0], EventKind.LEAKED)
    return found


def test_the_page_offers_it_only_for_a_leak(rows: list[Proxy]) -> None:
    client = sign_in("operator")
    offered = [
        url(row, "acknowledge") in text(client.get(f"/admin/resourcepool/proxy/{row.pk}/change/"))
        for row in rows
    ]
    assert offered == [True, False, False]


def test_the_page_shows_the_leak_and_its_acknowledgement(rows: list[Proxy]) -> None:
    client = sign_in("operator")

    def page(row: Proxy) -> str:
        recorder.flush()
        return text(client.get(f"/admin/resourcepool/proxy/{row.pk}/change/"))

    assert "Reported as leaked at" in page(rows[0])
    assert "The leak was acknowledged" not in page(rows[0])
    assert "Reported as leaked" not in page(rows[1]) + page(rows[2])
    do(client, "acknowledge", rows)
    assert "The leak was acknowledged by operator at" in page(rows[0])
    do(client, "revoke", rows)
    assert "Reported as leaked" not in page(rows[0])


def test_the_dashboard_links_to_the_reports_of_the_pool(rows: list[Proxy]) -> None:
    client: Client = sign_in("superuser")
    page = text(client.get("/admin/resourcepool/dashboard/"))
    assert "pool=resourcepool.proxy&amp;what=leaked" in page

"""Leaks in the admin: whoever knows of one says so, and its alarm is over."""

from typing import Any

import pytest
from django.test import Client

from resourcepool.history.recorder import recorder
from resourcepool.models import Event, Proxy
from resourcepool.signals import EventKind
from resourcepool.status.alarms import AlarmKind, alarms
from tests.admin.conftest import event, lease, sign_in, text
from tests.admin.resources.test_operations import do, url
from tests.app.rows import columns, several

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def rows(settings: Any) -> list[Proxy]:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY": True}
    found: list[Proxy] = several(Proxy, 3)
    for row in found[:2]:
        lease(row)
    event(found[0], EventKind.LEAKED)
    return found


def told(row: Proxy) -> list[str]:
    recorder.flush()
    return list(Event.objects.of(row).order_by("pk").values_list("what", flat=True))


def leaks() -> list[tuple[str, int]]:
    return [(one.pool, int(one.text.split()[0])) for one in alarms() if one.kind is AlarmKind.LEAKED]


def test_of_those_that_are_chosen_the_leaks_are_acknowledged_and_no_lease_changes(rows: list[Proxy]) -> None:
    before = [columns(row) for row in rows]
    assert leaks() == [("resourcepool.Proxy", 1)]
    page = do(sign_in("operator"), "acknowledge", rows)
    assert "1 leak was acknowledged." in page
    assert "2 skipped: not reported as leaked" in page
    assert told(rows[0]) == ["leaked", "acknowledged"]
    assert leaks() == []
    assert [columns(row) for row in rows] == before


def test_the_page_of_a_resource_offers_it_for_a_leak_alone(rows: list[Proxy]) -> None:
    client = sign_in("operator")
    offered = [
        url(row, "acknowledge") in text(client.get(f"/admin/resourcepool/proxy/{row.pk}/change/"))
        for row in rows
    ]
    assert offered == [True, False, False]


def test_the_page_of_a_resource_says_that_it_is_a_leak_and_who_knows_of_it(rows: list[Proxy]) -> None:
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


def test_a_freed_one_needs_no_acknowledgement(rows: list[Proxy]) -> None:
    do(sign_in("operator"), "revoke", rows)
    assert told(rows[0]) == ["leaked", "revoked"]
    assert leaks() == []


@pytest.mark.parametrize("role", ["viewer", "administrator", "blind operator"])
def test_who_may_not_operate_may_not_acknowledge(rows: list[Proxy], role: str) -> None:
    answer = sign_in(role).post(url(rows[0], "acknowledge"), {"reason": "x", "confirmed": "yes"})
    assert answer.status_code == 403
    assert told(rows[0]) == ["leaked"]


def test_the_dashboard_leads_to_the_reports_of_that_pool(rows: list[Proxy]) -> None:
    client: Client = sign_in("superuser")
    page = text(client.get("/admin/resourcepool/dashboard/"))
    assert "pool=resourcepool.proxy&amp;what=leaked" in page

"""Deletion in the admin: messages and log entries match the result for each row."""

from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.test import Client

from resourcepool.models import Proxy
from resourcepool.resources.state import Status
from tests.admin.conftest import lease, sign_in, text
from tests.app.rows import columns, several

LIST = "/admin/resourcepool/proxy/"

pytestmark = pytest.mark.django_db


def delete_one(client: Client, row: Proxy, **more: Any) -> Any:
    return client.post(f"{LIST}{row.pk}/delete/", {"post": "yes", **more}, follow=True)


def delete_selected(client: Client, rows: list[Proxy]) -> Any:
    chosen = {"action": "delete_selected", "_selected_action": [row.pk for row in rows], "post": "yes"}
    return client.post(LIST, chosen, follow=True)


def logged() -> list[tuple[int, str]]:
    return sorted(LogEntry.objects.values_list("action_flag", "object_id"))


def test_a_held_resource_is_not_reported_as_deleted(administrator: Client) -> None:
    held, _other = several(Proxy, 2)
    lease(held)
    page = text(delete_one(administrator, held))
    assert "1 held resource was retired instead" in page
    assert "eleted successfully" not in page
    assert "uccessfully deleted" not in page
    assert columns(held)["status"] == Status.RETIRED
    assert logged() == [(CHANGE, str(held.pk))]


def test_the_confirmation_page_counts_held_resources(administrator: Client) -> None:
    held, free, other = several(Proxy, 3)
    lease(held)
    lease(other)
    said = "1 of these is held. It will be retired instead"
    assert said in text(administrator.get(f"{LIST}{held.pk}/delete/"))
    assert "of these is held" not in text(administrator.get(f"{LIST}{free.pk}/delete/"))
    asked = {"action": "delete_selected", "_selected_action": [held.pk, free.pk]}
    assert said in text(administrator.post(LIST, asked))
    asked["_selected_action"].append(other.pk)
    assert "2 of these are held. They will be retired instead" in text(administrator.post(LIST, asked))


def test_a_free_resource_is_reported_as_deleted_once(administrator: Client) -> None:
    free, other = several(Proxy, 2)
    page = text(delete_one(administrator, free))
    assert page.count("uccessfully deleted 1 proxy.") == 1
    assert "retired" not in page.partition('id="changelist"')[0]
    assert logged() == [(DELETION, str(free.pk))]
    assert Proxy.objects.get() == other


def test_deleted_and_retired_resources_are_counted_separately(administrator: Client) -> None:
    rows = several(Proxy, 3)
    lease(rows[1])
    page = text(delete_selected(administrator, rows))
    assert "uccessfully deleted 2 proxies." in page
    assert "1 held resource was retired instead" in page
    expected = [(CHANGE, str(rows[1].pk)), *((DELETION, str(row.pk)) for row in (rows[0], rows[2]))]
    assert logged() == sorted(expected)  # as texts


def test_nothing_is_reported_as_deleted_if_all_are_held(administrator: Client) -> None:
    rows = several(Proxy, 2)
    for row in rows:
        lease(row)
    page = text(delete_selected(administrator, rows))
    assert "2 held resources were retired instead" in page
    assert "uccessfully deleted" not in page


def test_a_popup_reports_only_a_real_deletion(administrator: Client) -> None:
    held, free = several(Proxy, 2)
    lease(held)
    kept, gone = (delete_one(administrator, row, _popup="1") for row in (held, free))
    assert "popup_response" not in text(kept)
    assert "1 held resource was retired instead" in text(kept)
    assert "&quot;action&quot;: &quot;delete&quot;" in gone.content.decode()


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_without_permission_nothing_is_deleted_from_the_list(role: str) -> None:
    rows = several(Proxy, 2)
    client = sign_in(role)
    delete_selected(client, rows)
    assert delete_one(client, rows[0]).status_code == 403
    assert Proxy.objects.count() == 2
    assert logged() == []


def test_a_resource_removed_meanwhile_is_not_reported_as_deleted(administrator: Client) -> None:
    gone, there = several(Proxy, 2)
    gone.delete()
    page = text(delete_selected(administrator, [gone, there]))
    assert "uccessfully deleted 1 proxy." in page

"""The panel of dispensers on the dashboard."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from resourcepool.db.dialect import DbLater
from resourcepool.models import Bucket, Dispenser, DispenserTask
from tests.dashboard.test_streams import shown
from tests.taskqueue.dispenser_rows import bucket, dispenser, failed, tasks

pytestmark = pytest.mark.django_db

LIST = "admin:resourcepool_dispensertask_changelist"


def panel(client: Client) -> str:
    page = shown(client)
    return page[page.index('aria-labelledby="rp-dispensers"') :].split("</section>")[0]


def test_each_dispenser_has_a_line_with_links_and_why_nothing_is_handed_out(admin_client: Client) -> None:
    dispenser("<b>")
    tasks("a", "b", "c", name="<b>")
    assert "rp-server-dead" in panel(admin_client)
    bucket("alice", "d", name="<b>")
    dispenser("idle")
    said = panel(admin_client)
    assert "&lt;b&gt;" in said
    assert "<b>" not in said
    assert "rp-server-dead" not in said
    assert '<td colspan="9"><small>it has no unfinished tasks</small></td>' in said
    assert reverse(LIST) + "?dispenser=%3Cb%3E&amp;state=ready" in said


def test_a_paused_one_says_so_and_a_rebuild_how_long_ago_it_was(admin_client: Client) -> None:
    dispenser(is_paused=True)
    assert ">-</td>" in panel(admin_client)
    Dispenser.objects.update(rebuilt_at=DbLater(-7_200))
    said = panel(admin_client)
    assert "rp-server-late" in said
    assert "2 h ago" in said


def test_alarms_lead_to_the_tasks_that_they_are_about(admin_client: Client) -> None:
    dispenser()
    tasks("a")
    failed("b")
    DispenserTask.objects.filter(key="a").update(added_at=DbLater(-7_200))
    page = shown(admin_client)
    page_of_it = reverse("admin:resourcepool_dispenser_change", args=["reviews"])
    for address in (f"{reverse(LIST)}?dispenser=reviews&amp;state=failed", page_of_it):
        assert f'href="{address}">dispenser: reviews</a>' in page


def test_where_there_are_more_it_says_so_and_leads_to_all(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resourcepool.status.status_reader.MAX_ROWS", 1)
    dispenser("a")
    assert "All dispensers" not in panel(admin_client)
    dispenser("b")
    assert "The first 1 by name." in (said := panel(admin_client))
    address = reverse("admin:resourcepool_dispenser_changelist")
    assert f'href="{address}">All dispensers' in said


def test_who_may_see_dispensers_but_not_their_tasks_reads_neither_a_key_nor_an_error(
    client: Client, django_user_model: Any
) -> None:
    dispenser()
    bucket("alice", "secret-assigned")
    tasks("secret-ready")
    failed("secret-failed", outcome="secret error")
    DispenserTask.objects.update(added_at=DbLater(-7_200), assigned_at=DbLater(-7_200))
    user = django_user_model.objects.create_user("viewer", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_dispenser", "view_bucket"]))
    client.force_login(user)
    names = ("dashboard_changelist", "dashboard_live", "dispenser_changelist", "bucket_changelist")
    addresses = [
        *(reverse(f"admin:resourcepool_{name}") for name in names),
        reverse("admin:resourcepool_dispenser_change", args=["reviews"]),
        reverse("admin:resourcepool_bucket_change", args=[Bucket.objects.get().pk]),
    ]
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code == 200
        assert "secret" not in answer.content.decode()
    assert client.get(reverse("admin:resourcepool_dispensertask_changelist")).status_code == 403

"""The panel of streams on the dashboard."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from resourcepool.models import Stream, Task
from resourcepool.taskqueue import submit
from tests.app.rows import granted

pytestmark = pytest.mark.django_db


def shown(client: Client) -> str:
    answer = client.get(reverse("admin:resourcepool_dashboard_changelist"))
    assert answer.status_code == 200
    return answer.content.decode()


def test_there_is_no_panel_without_streams(admin_client: Client) -> None:
    assert "rp-streams" not in shown(admin_client)


def test_each_stream_has_a_line_with_its_leader_and_why_nothing_runs(admin_client: Client) -> None:
    granted(Stream.objects.create(name="oracle"), "web-1 <b>")
    submit("oracle", "note", key="a")
    Task.objects.update(state="blocked", outcome="disk <full>")
    page = shown(admin_client)
    assert "web-1 &lt;b&gt;" in page
    assert (
        '<td colspan="8"><small>task a blocks it: disk &lt;full&gt;. Retry or discard it</small></td>' in page
    )
    assert reverse("admin:resourcepool_task_changelist") + "?stream=oracle&amp;standing=unfinished" in page


def test_who_may_not_see_streams_sees_none_of_them(client: Client, django_user_model: Any) -> None:
    from django.contrib.auth.models import Permission

    Stream.objects.create(name="oracle")
    submit("oracle", "note")
    user = django_user_model.objects.create_user("viewer", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_proxy"))
    client.force_login(user)
    assert "oracle" not in shown(client)

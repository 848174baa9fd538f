"""The panel of streams on the dashboard."""

from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from resourcepool.db.dialect import DbLater
from resourcepool.models import Stream, Task
from resourcepool.status.work.streams import STREAMS
from resourcepool.taskqueue import submit
from tests.app.rows import granted

pytestmark = pytest.mark.django_db


def shown(client: Client) -> str:
    answer = client.get(reverse("admin:resourcepool_dashboard_changelist"))
    assert answer.status_code == 200
    return answer.content.decode()


def test_each_stream_has_a_line_with_its_leader_and_why_nothing_runs(admin_client: Client) -> None:
    granted(Stream.objects.create(name="oracle"), "web-1 <b>")
    submit("oracle", "note", key="a")
    Task.objects.update(state="blocked", outcome="disk <full>")
    page = shown(admin_client)
    assert "web-1 &lt;b&gt;" in page
    assert (
        '<td colspan="9"><small>blocked by task a: disk &lt;full&gt;. Retry or discard the task</small></td>'
        in page
    )
    assert reverse("admin:resourcepool_task_changelist") + "?stream=oracle&amp;status=unfinished" in page


STANDINGS = {  # what is the matter with the first task: what is said to those who may not see tasks
    "blocked": ({"state": "blocked"}, "blocked by a task"),
    "to be retried": ({"busy_before": DbLater(90)}, "a task will be retried in"),
    "late": ({"submitted_at": DbLater(-7_200)}, "the first task is 2 h"),
}


@pytest.mark.parametrize("case", STANDINGS)
def test_who_may_see_streams_but_not_tasks_reads_neither_a_key_nor_an_error(
    client: Client, django_user_model: Any, case: str
) -> None:
    changes, said = STANDINGS[case]
    granted(Stream.objects.create(name="oracle"), "web-1")
    submit("oracle", "secret-type", key="secret-key")
    Task.objects.update(outcome="secret error", **changes)
    user = django_user_model.objects.create_user("viewer", is_staff=True)
    client.force_login(user)
    addresses = [
        reverse("admin:resourcepool_dashboard_changelist"),
        reverse("admin:resourcepool_dashboard_live"),
        reverse("admin:resourcepool_stream_changelist"),
        reverse("admin:resourcepool_stream_change", args=["oracle"]),
    ]

    def pages(*permissions: str) -> str:
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        answers = [client.get(address) for address in addresses]
        assert [answer.status_code for answer in answers] == [200] * 4
        return "".join(answer.content.decode() for answer in answers)

    redacted = pages("view_stream")
    assert "oracle" in redacted
    assert "secret" not in redacted
    assert said in redacted
    assert "secret-key" in pages("view_stream", "view_task")


def test_where_not_all_streams_are_shown_a_link_leads_to_the_list_of_all(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(STREAMS, "page", partial(STREAMS.page, limit=2))
    for name in ("a", "b"):
        Stream.objects.create(name=name)
    assert "rp-streams-every" not in shown(admin_client)
    Stream.objects.create(name="c")
    page = shown(admin_client)
    assert "The first 2 by name." in page
    assert reverse("admin:resourcepool_stream_changelist") in page


def test_one_whose_settings_are_wrong_is_marked_though_it_has_no_tasks(admin_client: Client) -> None:
    Stream.objects.create(name="oracle")
    assert "rp-server-dead" not in shown(admin_client)
    Stream.objects.update(lanes=0)
    assert "rp-server-dead" in shown(admin_client)


def test_a_blocked_task_leads_to_itself_and_failed_ones_to_their_list(admin_client: Client) -> None:
    granted(Stream.objects.create(name="oracle"), "web-1")
    submit("oracle", "note", key="a")
    Task.objects.update(state="blocked")
    task = reverse("admin:resourcepool_task_change", args=[Task.objects.get().pk])
    assert f'href="{task}">stream: oracle</a>' in shown(admin_client)
    Task.objects.update(state="dead", finished_at=DbLater(0))
    dead = f"{reverse('admin:resourcepool_task_changelist')}?stream=oracle&amp;status=dead"
    assert f'href="{dead}">stream: oracle</a>' in shown(admin_client)


def test_a_stream_with_a_blocked_lane_is_marked(admin_client: Client) -> None:
    granted(Stream.objects.create(name="oracle", lanes=2), "web-1")
    submit("oracle", "note", key="a")
    Task.objects.update(state="blocked")
    assert '<tr class="rp-server-dead">' in shown(admin_client)

"""The panel of streams on the dashboard."""

import datetime
from functools import partial

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from resourcepool.db.dialect import DbLater
from resourcepool.models import Bucket, Dispenser, DispenserTask, Stream, Task, Timer, TimerNode, Topic
from resourcepool.status.work.streams import STREAMS
from resourcepool.taskqueue import submit
from tests.app.rows import granted
from tests.taskqueue.dispenser_rows import bucket, dispenser, failed, tasks

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


def seen_by(client: Client, permissions: str, *addresses: str) -> str:
    """Return what somebody with these permissions reads on the dashboard and at these addresses."""
    user, _ = User.objects.get_or_create(username="viewer", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions.split()))
    client.force_login(user)
    dashboard = (reverse(f"admin:resourcepool_dashboard_{page}") for page in ("changelist", "live"))
    answers = [client.get(address) for address in (*dashboard, *addresses)]
    assert {answer.status_code for answer in answers} == {200}
    return "".join(answer.content.decode() for answer in answers)


STANDINGS = {  # what is the matter with the first task: what is said to those who may not see tasks
    "blocked": ({"state": "blocked"}, "blocked by a task"),
    "to be retried": ({"busy_before": DbLater(90)}, "a task will be retried in"),
    "late": ({"submitted_at": DbLater(-7_200)}, "the first task is 2 h"),
}


@pytest.mark.parametrize("case", STANDINGS)
def test_who_may_see_streams_but_not_tasks_reads_neither_a_key_nor_an_error(client: Client, case: str) -> None:
    changes, said = STANDINGS[case]
    granted(Stream.objects.create(name="oracle"), "web-1")
    submit("oracle", "secret-type", key="secret-key")
    Task.objects.update(outcome="secret error", **changes)
    pages = [
        reverse("admin:resourcepool_stream_changelist"),
        reverse("admin:resourcepool_stream_change", args=["oracle"]),
    ]
    redacted = seen_by(client, "view_stream", *pages)
    assert "oracle" in redacted
    assert "secret" not in redacted
    assert said in redacted
    assert "secret-key" in seen_by(client, "view_stream view_task", *pages)


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


def test_an_alarm_of_failed_tasks_leads_to_their_list(admin_client: Client) -> None:
    submit(Stream.objects.create(name="oracle").name, "note", key="a")
    Task.objects.update(state="dead", finished_at=DbLater(0))
    dead = f"{reverse('admin:resourcepool_task_changelist')}?stream=oracle&amp;status=dead"
    assert f'href="{dead}">stream: oracle</a>' in shown(admin_client)


# The panel of dispensers on the dashboard.


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


def test_who_may_see_dispensers_but_not_their_tasks_reads_neither_a_key_nor_an_error(client: Client) -> None:
    dispenser()
    bucket("alice", "secret-assigned")
    tasks("secret-ready")
    failed("secret-failed", outcome="secret error")
    DispenserTask.objects.update(added_at=DbLater(-7_200), assigned_at=DbLater(-7_200))
    pages = [
        *(reverse(f"admin:resourcepool_{name}_changelist") for name in ("dispenser", "bucket")),
        reverse("admin:resourcepool_dispenser_change", args=["reviews"]),
        reverse("admin:resourcepool_bucket_change", args=[Bucket.objects.get().pk]),
    ]
    assert "secret" not in seen_by(client, "view_dispenser view_bucket", *pages)
    assert client.get(reverse("admin:resourcepool_dispensertask_changelist")).status_code == 403


# The panel of timers on the dashboard.


NAME = "order <b>"


def late() -> None:
    moment = timezone.now() - datetime.timedelta(hours=2)
    Timer.objects.create(topic=Topic.objects.create(name=NAME), name="a", due_at=moment, busy_before=moment)


def test_each_topic_has_a_line_with_what_is_late_and_why_nothing_fires(admin_client: Client) -> None:
    late()
    page = shown(admin_client)
    assert "order &lt;b&gt;" in page
    assert "no live node handles it; start one: <code>manage.py resourcepool_timers</code></small>" in page
    address = reverse("admin:resourcepool_timer_changelist")
    assert f'href="{address}?topic=order+%3Cb%3E&amp;status=due"' in page  # of the figure, and of the problem
    granted(TimerNode.objects.create(name="web-1", topics=[NAME]), "web-1")
    page = shown(admin_client)
    assert "timer a is 2 h late; due: 1." in page
    assert '<tr class="rp-server-dead">' in page
    assert "no live node" not in page


@pytest.mark.parametrize("is_handled", [True, False])
def test_who_may_see_topics_but_not_timers_reads_neither_a_name_nor_an_error(
    client: Client, is_handled: bool
) -> None:
    late()
    Timer.objects.update(name="secret-name", outcome="secret error", failures=1)
    if is_handled:
        granted(TimerNode.objects.create(name="web-1", topics=[NAME]), "web-1")
    pages = [
        reverse("admin:resourcepool_topic_changelist"),
        reverse("admin:resourcepool_topic_change", args=[quote(NAME)]),
    ]
    redacted = seen_by(client, "view_topic", *pages)
    assert "secret" not in redacted
    assert ("the first timer is 2 h late" if is_handled else "no live node") in redacted
    assert "secret-name" in seen_by(client, "view_topic view_timer", *pages)

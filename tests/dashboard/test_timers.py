"""The panel of timers on the dashboard."""

import datetime
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from resourcepool.models import Timer, TimerNode, Topic
from tests.app.rows import granted
from tests.dashboard.test_streams import shown

pytestmark = pytest.mark.django_db
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
    client: Client, django_user_model: Any, is_handled: bool
) -> None:
    late()
    Timer.objects.update(name="secret-name", outcome="secret error", failures=1)
    if is_handled:
        granted(TimerNode.objects.create(name="web-1", topics=[NAME]), "web-1")
    user = django_user_model.objects.create_user("viewer", is_staff=True)
    client.force_login(user)
    addresses = [
        reverse("admin:resourcepool_dashboard_changelist"),
        reverse("admin:resourcepool_dashboard_live"),
        reverse("admin:resourcepool_topic_changelist"),
        reverse("admin:resourcepool_topic_change", args=[quote(NAME)]),
    ]

    def pages(*permissions: str) -> str:
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        answers = [client.get(address) for address in addresses]
        assert [answer.status_code for answer in answers] == [200] * 4
        return "".join(answer.content.decode() for answer in answers)

    redacted = pages("view_topic")
    assert "secret" not in redacted
    assert ("the first timer is 2 h late" if is_handled else "no live node") in redacted
    assert "secret-name" in pages("view_topic", "view_timer")

"""What an operator sees of timers, and does to them, from a shell."""

import datetime
from typing import Any

import pytest
from django.utils import timezone

from resourcepool.models import Timer, Topic
from tests.management.command_runner import run

pytestmark = pytest.mark.django_db
TOPIC = "order.timeout"


@pytest.fixture
def topic() -> Topic:
    row: Topic = Topic.objects.create(name=TOPIC)
    moment = timezone.now() + datetime.timedelta(hours=1)
    for name, columns in {"a": {}, "b": {}, "c": {"state": "dead", "finished_at": timezone.now()}}.items():
        fields: dict[str, Any] = {
            "topic": row,
            "name": name,
            "due_at": moment,
            "busy_before": moment,
            **columns,
        }
        Timer.objects.create(payload='{"secret": "s3cret"}', **fields)
    return row


def test_each_topic_is_shown_and_why_nothing_fires(topic: Topic) -> None:
    ran = run("topics")
    assert ran.out.splitlines()[0].split() == [
        *("topic", "status", "nodes", "pending", "next", "in", "due", "late", "by", "running"),
        *("done/min", "failed/min", "dead-letter"),
    ]
    assert f"{TOPIC}: no live node handles it; start one: `manage.py resourcepool_timers`" in ran.out
    assert run("topics", "show", TOPIC).out == ran.out
    assert run("why", TOPIC).out == ran.out
    (one,) = run("topics", "show", "--json").json["topics"]
    assert (one["pending"], one["dead"], one["late"], one["explanation"][:12]) == (2, 1, 0.0, "no live node")
    assert "s3cret" not in run("topics", "--json").all + run("why", TOPIC, "--json").all


def test_resourcepool_status_tells_of_late_timers_and_dead_letters(topic: Topic) -> None:
    Timer.objects.filter(name="a").update(busy_before=timezone.now() - datetime.timedelta(hours=2))
    shown = run("status").out
    assert f"timers: {TOPIC}: no live node handles it" in shown
    assert f"timers: {TOPIC}: failed for good, waiting for an operator: 1." in shown

"""Settings of queue groups are edited, validated and saved; columns of the planner are never overwritten."""

from typing import Any

import pytest
from django.test import Client

from resourcepool.db.dialect import DbLater
from resourcepool.models import Queue, QueueGroup, Server
from tests.admin.conftest import text
from tests.admin.queues.scene import LIST, queue_group, server

pytestmark = pytest.mark.django_db

ADDRESS = LIST.format("queuegroup")
SETTINGS = {
    "strategy": "sticky",
    "heartbeat_every": "1",
    "judge_dead_after": "6",
    "reload_every": "0.2",
    "handover_timeout": "60",
}


def edit(client: Client, row: QueueGroup, **entered: Any) -> Any:
    return client.post(f"{ADDRESS}{row.pk}/change/", {**SETTINGS, **entered}, follow=True)


def test_one_is_added_with_its_settings(administrator: Client) -> None:
    administrator.post(f"{ADDRESS}add/", {"name": "orders", **SETTINGS, "heartbeat_every": "2"})
    made = QueueGroup.objects.get()
    assert (made.name, made.heartbeat_every, made.generation) == ("orders", 2.0, 0)


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[31m", "x" * 101])
def test_a_name_that_cannot_be_said_is_refused(administrator: Client, name: str) -> None:
    assert "errorlist" in text(administrator.post(f"{ADDRESS}add/", {"name": name, **SETTINGS}))
    assert not QueueGroup.objects.exists()


REFUSED = [
    ({"judge_dead_after": "1.5"}, "At least two heartbeats (2 s)"),
    ({"handover_timeout": "3"}, "At least the time after which a server is presumed dead (6 s)"),
    ({"reload_every": "1.5"}, "At most one heartbeat (1 s)"),
    ({"heartbeat_every": "nan"}, "Enter a number"),
    ({"heartbeat_every": "inf"}, "Enter a number"),
    ({"heartbeat_every": "-1"}, "greater than or equal to 0.1"),
    ({"strategy": "random"}, "Select a valid choice"),
]


@pytest.mark.parametrize(("entered", "said"), REFUSED)
def test_settings_that_contradict_each_other_are_refused(
    administrator: Client, entered: dict[str, str], said: str
) -> None:
    orders = queue_group()
    assert said in text(edit(administrator, orders, **entered))
    assert not QueueGroup.objects.exclude(heartbeat_every=1.0).exists()


def test_nothing_is_written_when_nothing_was_edited(
    administrator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QueueGroup, "save", lambda *_, **__: pytest.fail("saved"))
    assert QueueGroup.objects.bulk_create([QueueGroup(name="orders")])
    edit(administrator, QueueGroup.objects.get())


def test_another_strategy_makes_a_plan_due_and_another_heartbeat_does_not(administrator: Client) -> None:
    orders = queue_group()
    edit(administrator, orders, heartbeat_every="2")
    orders.refresh_from_db()
    assert not orders.is_assignment_due
    edit(administrator, orders, heartbeat_every="2", strategy="round_robin")
    orders.refresh_from_db()
    assert orders.is_assignment_due


def test_neither_the_name_nor_what_servers_write_is_edited(administrator: Client) -> None:
    orders = queue_group()
    edit(administrator, orders, name="other", is_paused="on", generation="9", assigned_by="me")
    orders.refresh_from_db()
    assert (orders.name, orders.is_paused, orders.generation, orders.assigned_by) == ("orders", False, 0, "")


def test_the_list_says_how_many_servers_and_queues_there_are(viewer: Client) -> None:
    orders = queue_group(queues=5)
    server(orders, "A")
    dead = server(orders, "B")
    Server.objects.filter(pk=dead.pk).update(busy_before=DbLater(-5))
    Queue.objects.update(cur_server=Server.objects.get(name="A"))
    Queue.objects.filter(queue_id__in=["q0", "q1"]).update(cur_server=None)
    Queue.objects.filter(queue_id="q2").update(cur_server=dead)
    queue_group("empty", 0)
    page = text(viewer.get(ADDRESS))
    rows = {
        row.name: (len(row.status.alive), row.status.queues, row.status.unowned)
        for row in viewer.get(ADDRESS).context["cl"].result_list
    }
    assert rows == {"orders": (1, 5, 3), "empty": (0, 0, 0)}
    assert "sticky: the fewest moves" in page

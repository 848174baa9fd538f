"""The number of queries of a page is small, and the same with thirty rows and with ten times as many."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from resourcepool.admin import paging
from resourcepool.db.dialect import DbLater
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import (
    Bucket,
    Dispenser,
    DispenserTask,
    Event,
    Job,
    Proxy,
    Queue,
    Server,
    Stream,
    Task,
    Ticket,
    Timer,
    Topic,
)
from resourcepool.operations import OPERATIONS
from resourcepool.queues import reassignment
from resourcepool.signals import EventKind
from tests.admin.queues.scene import queue_group
from tests.committed import *  # noqa: F403 (fixtures)

pytestmark = pytest.mark.django_db(transaction=True)  # a pool without a table ends a transaction
FEW, MANY = 30, 300  # few, but more than the dashboard shows of each: then it counts the others
HELD = {"busy_before": DbLater(600), "fence": 7}
FILLED = (Event, Ticket, Task, Timer, DispenserTask, Bucket, Job, Queue, Server, LockRow, Proxy)


def fill(count: int) -> None:
    """Have as many rows of each, half of the leased ones held, and as many events and waiters for each."""
    for model in FILLED:
        model.objects.all()._raw_delete("default")
    holders = [{"holder": f"web-{n}/7/main/{n}", **HELD} if n % 2 else {} for n in range(count)]
    Proxy.objects.bulk_create(
        Proxy(pk=n + 1, host=f"h{n}.example", port=80, **held) for n, held in enumerate(holders)
    )
    LockRow.objects.bulk_create(LockRow(name=f"lock-{n}", **held) for n, held in enumerate(holders))
    Job.objects.bulk_create(Job(name=f"job {n}", **held) for n, held in enumerate(holders))
    for pool, name in (("resourcepool.proxy", "{}"), ("resourcepool.lock", "lock-{}")):
        kinds = (EventKind.ACQUIRED, EventKind.REVOKED, EventKind.LOST)
        Event.objects.bulk_create(
            Event(at=DbLater(-n), what=kinds[n % 3], pool=pool, row=name.format(n % 3), fence=7, actor="ann")
            for n in range(count)
        )
    for number in range(count):
        waiter = {"asked_at": DbLater(-900 - number), "busy_before": DbLater(600), "holder": f"w/{number}/m/1"}
        tickets = [Ticket(pool="resourcepool.proxy", **waiter)]
        tickets.append(Ticket(pool=f"resourcepool.lock:lock-{number}", selector=f"lock-{number}", **waiter))
        Ticket.objects.bulk_create(tickets)
    fill_containers(count)


def fill_containers(count: int) -> None:
    stream, topic = Stream.objects.get_or_create(name="oracle")[0], Topic.objects.get_or_create(name="t")[0]
    dispenser, later = Dispenser.objects.get_or_create(name="d")[0], DbLater(60)
    Task.objects.bulk_create(
        Task(stream=stream, key=f"key-{n}", type="t", state="blocked" if n < 2 else "ready")
        for n in range(count)
    )
    Timer.objects.bulk_create(
        Timer(topic=topic, name=str(n), due_at=later, busy_before=later) for n in range(count)
    )
    Bucket.objects.bulk_create(
        Bucket(pk=n + 1, dispenser=dispenser, name=f"b{n}", **HELD) for n in range(count)
    )
    assigned = {"dispenser": dispenser, "state": "assigned", "fence": 1, "score": 1, "assigned_at": later}
    DispenserTask.objects.bulk_create(
        DispenserTask(key=f"k{n}", bucket_id=n + 1, **assigned) for n in range(count)
    )
    group = queue_group(f"orders{count}", count)
    usual = {"ttl": 60.0, "idle_since": later, "registered_at": later, **HELD}
    Server.objects.bulk_create(
        Server(queue_group=group, name=f"s{n}", holder="h", **usual) for n in range(count)
    )
    reassignment.reassign("default", group.pk, "test")


def sent_for(client: Client, address: str) -> list[str]:
    client.get(address)
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200, address
    return [query["sql"] for query in queries]


DASHBOARD = (
    *("dashboard/", "dashboard/live/", "dashboard/waiting/", "dashboard/waiting/?of=resourcepool.Proxy"),
    *("dashboard/search/?q=3", "dashboard/search/?q=lock-3", "dashboard/search/?q=ann"),
    *("dashboard/search/?q=web-3/7/main/3", "dashboard/search/?q=nowhere"),
)
PAGES = (
    *("proxy/3/change/", "proxy/3/activity/", "lock/lock-3/change/", "stream/oracle/change/"),
    *(f"proxy/3/operate/{name}/" for name in OPERATIONS),
)
EVENTS = "event/?pool=resourcepool.proxy&what=revoked&past=hour&who=ann&from=2026-11-21T03:00"
LISTS = (
    *("proxy/", "proxy/?state=held", "proxy/?q=h3.example", "proxy/?q=nowhere", "proxy/?on_host=web-3"),
    "proxy/?state=held&tag=eu&held_by=w&on_host=w&in_country=de&q=a",
    *("event/", "event/?past=hour", "event/?who=ann", "event/?q=3", "event/?q=nobody", EVENTS, f"{EVENTS}&q=1"),
    *("lock/", "lock/?status=held", "ticket/", "job/", "sample/", "sample/?_facets=True", "move/?_facets=True"),
    *("stream/", "task/", "task/?q=key-3", "timer/", "topic/", "dispenser/", "dispensertask/", "bucket/"),
    *("queue/", "queue/?q=q", "server/", "server/?q=s", "move/", "move/?q=q", "queuegroup/"),
)
MOST = {**dict.fromkeys(LISTS, 10), **dict.fromkeys(PAGES, 13)}


LONG = ("proxy/", "event/", "ticket/", "job/", "sample/", "move/", "task/", "timer/")


def test_no_page_asks_much_or_more_with_more_rows_or_counts_a_long_table(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "MAX_COUNTED", FEW - 1)
    counts: dict[int, dict[str, int]] = {}
    for rows in (FEW, MANY):
        fill(rows)
        sent = {each: sent_for(admin_client, f"/admin/resourcepool/{each}") for each in (*DASHBOARD, *MOST)}
        counts[rows] = {each: len(queries) for each, queries in sent.items()}
        assert not [sql for each in LISTS if each.startswith(LONG) for sql in sent[each] if "COUNT(" in sql]
    few, many = counts[FEW], counts[MANY]
    assert {each: (few[each], many[each]) for each in few if many[each] > few[each]} == {}
    assert {each: many[each] for each in MOST if many[each] > MOST[each]} == {}

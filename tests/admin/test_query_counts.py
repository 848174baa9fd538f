"""The number of queries of a page is the same with thirty rows and with ten times as many."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from resourcepool.db.dialect import DbLater
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import Event, Proxy, Stream, Task, Ticket, Timer, Topic
from resourcepool.signals import EventKind
from tests.committed import *  # noqa: F403 (fixtures)

pytestmark = pytest.mark.django_db(transaction=True)  # a pool without a table ends a transaction
FEW, MANY = 30, 300  # few, but more than the dashboard shows of each: then it counts the others
HELD = {"busy_before": DbLater(600), "fence": 7}


def fill(count: int) -> None:
    """Have as many proxies, locks and tasks, half of them held, and as many events and waiters for each."""
    for model in (Event, Ticket, Task, Timer, LockRow, Proxy):
        model.objects.all()._raw_delete("default")
    holders = [{"holder": f"web-{n}/7/main/{n}", **HELD} if n % 2 else {} for n in range(count)]
    Proxy.objects.bulk_create(
        Proxy(pk=n + 1, host=f"h{n}.example", port=80, **held) for n, held in enumerate(holders)
    )
    LockRow.objects.bulk_create(LockRow(name=f"lock-{n}", **held) for n, held in enumerate(holders))
    stream = Stream.objects.get_or_create(name="oracle")[0]
    Task.objects.bulk_create(
        Task(stream=stream, key=f"key-{n}", type="t", state="blocked" if n < 2 else "ready")
        for n in range(count)
    )
    topic, later = Topic.objects.get_or_create(name="t")[0], DbLater(60)
    Timer.objects.bulk_create(
        Timer(topic=topic, name=str(n), due_at=later, busy_before=later) for n in range(count)
    )
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


def count_queries(client: Client, address: str) -> int:
    client.get(address)
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200, address
    return len(queries)


ADDRESSES = (
    *("dashboard/", "dashboard/live/", "dashboard/waiting/", "dashboard/waiting/?of=resourcepool.Proxy"),
    *("dashboard/search/?q=3", "dashboard/search/?q=lock-3", "dashboard/search/?q=ann"),
    *("dashboard/search/?q=web-3/7/main/3", "dashboard/search/?q=nowhere"),
    *("proxy/", "proxy/?state=held", "proxy/?q=h3.example", "proxy/?q=nowhere", "proxy/?on_host=web-3"),
    *("proxy/3/change/", "proxy/3/activity/", "proxy/3/operate/revoke/"),
    *("event/", "event/?past=hour", "event/?who=ann", "event/?q=3", "event/?q=nobody"),
    *("lock/", "lock/?status=held", "lock/lock-3/change/", "ticket/"),
    *("stream/", "stream/oracle/change/", "task/", "task/?q=key-3", "timer/", "topic/"),
)


def test_no_page_asks_more_with_more_rows(admin_client: Client) -> None:
    counts: dict[int, dict[str, Any]] = {}
    for rows in (FEW, MANY):
        fill(rows)
        counts[rows] = {each: count_queries(admin_client, f"/admin/resourcepool/{each}") for each in ADDRESSES}
    grown = {
        each: (counts[FEW][each], counts[MANY][each])
        for each in ADDRESSES
        if counts[MANY][each] > counts[FEW][each]
    }
    assert grown == {}

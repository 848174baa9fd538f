"""Data of the screenshots: a day of two pools, one of them with alarms."""

import math
from typing import Any

from django.contrib.auth.models import Permission, User

from resourcepool.db.dialect import DbLater
from resourcepool.models import Event, Job, Proxy, Queue, QueueGroup, Sample, Server
from resourcepool.queues import administration, reassignment
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.state import Status, Verdict
from resourcepool.signals import EventKind
from tests.admin.queues.scene import queue_group, server
from tests.app.models import Device
from tests.app.rows import new
from tests.waiting.threads import ticket

COUNTRIES = ("de", "us", "nl", "jp")


def proxies() -> None:
    """Forty proxies: most in use, some cooling down, some out of service."""
    for number in range(1, 41):
        checked = {"checked_at": DbLater(-90 - number * 9), "verdict": Verdict.OK, "latency": 0.2}
        columns = {"host": f"proxy{number}.example", "country": COUNTRIES[number % 4], "username": "crawler"}
        proxy = new(Proxy, **columns, **checked, **standing(number))
        if proxy.holder:
            begun(proxy, number * 7)
    for pks, status in (((35, 36), "banned by shop.example (403)"), ((37,), "answers too slowly")):
        ResourceQuerySet(model=Proxy).filter(pk__in=pks).quarantine(status, 1_500, actor="maria")


def standing(number: int) -> dict[str, Any]:
    holder = f"crawler{number % 3 + 1}/{4_100 + number}/main/{number}"
    if number <= 24:
        return {"holder": holder, "fence": 2 * number + 1, "busy_before": DbLater(90 + number)}
    if number in (25, 26):
        return {"busy_before": DbLater(60)}
    if number == 38:
        parked = {"in_service": False, "status": Status.OUT_OF_SERVICE, "reason": "being moved"}
        return {"holder": holder, "fence": 3, "busy_before": DbLater(110), **parked}
    if number == 39:
        return {"in_service": False, "status": Status.RESERVED, "reason": "maria: debugging the checkout"}
    if number == 40:
        return {"in_service": False, "status": Status.OUT_OF_SERVICE, "reason": "contract ended"}
    return {}


def devices() -> None:
    """Six devices, all in use, with waiters."""
    for number in range(1, 7):
        columns = {"holder": f"ci{number}/900/main/1", "fence": 5, "busy_before": DbLater(100)}
        begun(new(Device, name=f"phone {number}", **columns), 300 * number)
    for waited in (140, 65, 4):
        ticket(Device, asked_at=DbLater(-waited))


def begun(row: Any, ago: float) -> None:
    columns = {"pool": row._meta.label_lower, "row": str(row.pk), "fence": row.fence, "holder": row.holder}
    Event.objects.create(at=DbLater(-ago), what=EventKind.ACQUIRED, **columns)


def day() -> None:
    """A sample a minute with ups and downs, and a gap of half an hour."""
    for ago in range(1_440):
        if not 25 <= ago <= 31 and not 300 <= ago <= 345:
            wave = math.sin(ago / 11) + math.sin(ago / 97)
            sample("resourcepool.proxy", ago, round(20 + 6 * wave), 34, round(900 + 160 * wave), 0)
            waiters = max(0, round(3 * wave - 2))
            sample("testapp.device", ago, min(6, round(4 + 3 * wave)), 6, round(12 + 5 * wave), waiters)


def sample(pool: str, ago: int, leased: int, capacity: int, acquired: int, waiters: int) -> None:
    leased = max(0, min(leased, capacity))
    figures = {"leased": leased, "free": capacity - leased, "waiters": waiters, "acquired": max(0, acquired)}
    lost = 3 if pool == "resourcepool.proxy" and ago % 241 == 14 else 0  # matches ``counted``
    Sample.objects.create(pool=pool, minute=DbLater(-60.0 * (ago + 1) - 10), lost=lost, **figures)


def counted() -> None:
    """The events of the last minute and hour."""
    for what, count, ago in ((EventKind.ACQUIRED, 870, 20), (EventKind.LOST, 3, 900)):
        Event.objects.bulk_create(event_of(number, what, ago) for number in range(count))
    for _number in range(12):
        Event.objects.create(at=DbLater(-20), what=EventKind.ACQUIRED, pool="testapp.device", row="1")
    story()


def event_of(number: int, what: EventKind, ago: float, **more: Any) -> Event:
    """Return an event of one of the free proxies."""
    columns: dict[str, Any] = {"row": str(number % 8 + 27), "fence": 2 * number + 1, "pid": 4_100 + number % 40}
    host = f"crawler{number % 3 + 1}"
    columns |= {"host": host, "holder": f"{host}/{columns['pid']}/main/{number}", **more}
    return Event(at=DbLater(-ago), what=what, pool="resourcepool.proxy", **columns)


def story() -> None:
    """The activity of proxy 17."""
    before = {"row": "17", "fence": 33}
    stuck = {"reason": "stuck since the deploy", "actor": "maria", "seconds": 2_640.0}
    checked = {"row": "17", "fence": 31, "holder": "", "seconds": 0.21, "reason": "ok"}
    for event in (
        event_of(16, EventKind.CHECKED, 4_000, **checked),
        event_of(16, EventKind.ACQUIRED, 3_840, **before),
        event_of(16, EventKind.REVOKED, 1_200, **before, **stuck),
    ):
        event.save()


def jobs() -> None:
    Job.objects.create(name="sweep", done_at=DbLater(-730), result="0 returned to service", seconds=0.1)


def queues() -> None:
    """Two queue groups: one with servers that start, drain and crash on 64 queues, and one with 10,000."""
    mails = queue_group("mails", 0, heartbeat_every=2.0)
    for number in range(1, 9):
        server(mails, f"mail-{number}", weight=1 + number // 6)
    administration.add_queues("mails", [str(number) for number in range(10_000)], by="maria")
    administration.drain("mails", "mail-3", by="maria")
    orders = queue_group("orders", 64, heartbeat_every=2.0)
    for name in ("web-1", "web-2", "web-3"):
        server(orders, name, labels={"zone": "eu"})
        settle(orders)
    administration.drain("orders", "web-1", by="maria")
    settle(orders, 12)
    server(orders, "web-4", weight=2)
    settle(orders, 9)
    Queue.objects.filter(queue_group=orders, queue_id__in=["q20", "q41"]).update(
        labels={"gpu": "a"}, cur_server=None
    )
    administration.add_queues("orders", ["invoices", "refunds"], labels={"gpu": "a"}, by="maria")
    Server.objects.filter(queue_group=orders, name="web-2").update(busy_before=DbLater(-1.5))
    Server.objects.filter(busy_before__gt=DbLater(0)).update(busy_before=DbLater(59.2))


def settle(of: QueueGroup, most: int = 10_000) -> None:
    """Let owners hand over requested queues, up to a number."""
    asked = Queue.objects.filter(queue_group=of, requested_at__isnull=False).values_list("cur_server", "pk")
    wanted: dict[int, list[int]] = {}
    for owner, pk in asked.order_by("pk")[:most]:
        wanted.setdefault(owner, []).append(pk)
    for owner, pks in wanted.items():
        reassignment.release("default", of.pk, f"#{owner}", owner, pks, ())


def operator() -> User:
    """A user who may view these two pools, and queues."""
    user = User.objects.create_user("maria", is_staff=True)
    names = [f"{action}_{model}" for action in ("view", "change", "operate") for model in ("proxy", "device")]
    names += ["add_proxy", "view_event", "view_ticket", "view_server", "view_move", "operate_server"]
    names += [f"{action}_{model}" for action in ("view", "operate") for model in ("queue", "queuegroup")]
    of_tasks = ("stream", "task", "dispenser", "bucket", "dispensertask", "topic", "timer")
    names += [f"{action}_{model}" for action in ("view", "operate") for model in of_tasks] + ["view_timernode"]
    lock_alarms = ("lock", "semaphorepermit", "rwlockpermit", "channel", "subscription")
    names += [f"{action}_{model}" for action in ("view", "operate") for model in lock_alarms]
    names += ["view_conditionwaiter", "view_barrier", "view_message"]
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    return user

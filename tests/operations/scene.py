"""Rows of every system: each operation changes some of them and skips others. Their keys are the same in every run."""

from typing import Any

from django.utils import timezone

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.locks.channels.models import Channel as ChannelRow, Message
from resourcepool.models import (
    Bucket,
    Dispenser,
    DispenserTask,
    Event,
    Proxy,
    Queue,
    QueueGroup,
    Server,
    Stream,
    Subscription,
    Task,
    Timer,
    Topic,
)
from resourcepool.queues import reassignment
from resourcepool.signals import EventKind
from tests.status.locks.conftest import A, B, lock, permits, stands, waits

HOUR = 3_600.0


def proxies() -> None:
    """901 is free, 902 is held and reported as leaked, 903 is out of service."""
    for pk, columns in (
        (901, {}),
        (902, {"holder": A, "busy_before": DbLater(HOUR)}),
        (903, {"in_service": False, "status": "out_of_service", "reason": "old"}),
    ):
        Proxy.objects.create(pk=pk, host=f"p{pk}.example", port=80, fence=5, **columns)
    told = {"pool": "resourcepool.proxy", "row": "902", "fence": 5, "holder": A}
    Event.objects.create(at=DbNow(), what=EventKind.LEAKED, **told)


def work() -> None:
    """A stream, a dispenser and a topic, and a paused one of each, with waiting, failed and finished work."""
    for model in (Stream, Dispenser, Topic):
        model.objects.create(name="orders")
        model.objects.create(name="idle", is_paused=True)
    for model, field, name, failed in (
        (Task, "stream_id", "key", "dead"),
        (DispenserTask, "dispenser_id", "key", "failed"),
        (Timer, "topic_id", "name", "dead"),
    ):
        for pk, called, state in ((701, "new", None), (702, "bad", failed), (703, "old", "done")):
            _make_work(model, pk, {field: "orders", name: called}, state)
    bucket = Bucket.objects.create(pk=711, dispenser_id="orders", name="alice")
    Bucket.objects.filter(pk=711).update(holder="alice", busy_before=DbLater(HOUR))
    assigned = {"state": "assigned", "bucket": bucket, "fence": 1, "assigned_at": DbNow()}
    DispenserTask.objects.create(pk=704, dispenser_id="orders", key="taken", score=4, **assigned)


def _make_work(model: Any, pk: int, columns: dict[str, Any], state: str | None) -> None:
    if model is Timer:
        columns |= {"due_at": DbLater(HOUR), "busy_before": DbLater(HOUR)}
    if model is Task:
        columns["type"] = "note"
    if model is DispenserTask:
        columns["score"] = 1
    if state is not None:
        columns |= {"state": state, "finished_at": timezone.now()}
    model.objects.create(pk=pk, **columns)


def channels() -> None:
    """One channel has messages and subscriptions, the other none."""
    row = ChannelRow.objects.create(name="config", last=3)
    ChannelRow.objects.create(name="empty")
    for number in (2, 3):
        Message.objects.create(channel=row, number=number, payload="{}")
    Subscription.objects.create(pk=801, channel=row, name="indexer", cursor=2)
    read = {"holder": A, "busy_before": DbLater(HOUR)}
    Subscription.objects.create(pk=802, channel=row, name="mailer", cursor=3, **read)


def locks() -> None:
    """Of each kind one that is held, and of some a free one."""
    lock("busy", A)
    lock("idle")
    permits("semaphore", "licence", [A, B, ""])
    permits("semaphore", "spare", [""])
    permits("rwlock", "catalogue", [B, "", ""])
    stands("import", A)
    waits("barrier", "import", B)


def queues() -> None:
    """Two queue groups; one has a server that works, and one that is drained."""
    orders = QueueGroup.objects.create(pk=931, name="orders")
    QueueGroup.objects.create(pk=932, name="mails", is_paused=True)
    Queue.objects.bulk_create([Queue(pk=921 + n, queue_group=orders, queue_id=str(n)) for n in range(2)])
    Queue.objects.create(pk=929, queue_group=orders, queue_id="9", pin="web-1")
    usual = {"ttl": 60.0, "fence": 1, "idle_since": DbNow(), "registered_at": DbNow()}
    for pk, state in ((911, "up"), (912, "draining")):
        columns = {**usual, "holder": f"web-{pk}/41/main", "busy_before": DbLater(HOUR), "state": state}
        Server.objects.create(pk=pk, queue_group=orders, name=f"web-{pk - 910}", **columns)
    reassignment.reassign("default", orders.pk, "test")


def everything() -> None:
    proxies()
    work()
    channels()
    locks()
    queues()

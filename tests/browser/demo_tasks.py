"""Streams, dispensers and timers of the screenshots: one of each at work, one of each with an alarm."""

import datetime
from typing import Any

from django.utils import timezone

from resourcepool.db.dialect import DbLater
from resourcepool.models import Dispenser, DispenserTask, Stream, Task, Timer, TimerNode, Topic
from resourcepool.taskqueue import NewTask, TaskDispenser, submit_many


def fill() -> None:
    """Create the rows."""
    streams()
    dispensers()
    timers()


def streams() -> None:
    for name in ("mails", "oracle"):
        Stream.objects.create(name=name)
        submit_many(name, [NewTask("CreateTableSpace", {"n": n}, key=f"req-{n}") for n in range(40, 52)])
    leads = {"holder": "web-1/812/MainThread/d54dfd05.1", "busy_before": DbLater(14), "fence": 7}
    Stream.objects.update(**leads)
    done = {"state": "done", "attempts": 1, "finished_at": timezone.now()}
    Task.objects.filter(stream_id="mails").update(**done)
    Task.objects.filter(stream_id="oracle", key__in=("req-40", "req-41")).update(**done)
    blocked = {"state": "blocked", "attempts": 3, "outcome": "OSError: no space left on device"}
    Task.objects.filter(stream_id="oracle", key="req-42").update(**blocked)


def dispensers() -> None:
    reviews = TaskDispenser("reviews")
    reviews.recreate_task_pool({number: float(number % 7) for number in range(101, 160)})
    for worker in ("alice", "bob"):
        reviews.tasks_done(worker, reviews.assign_tasks(20, worker)[:8])
    films = TaskDispenser("films")
    films.add_many({"film-1": 1, "film-2": 2})
    Dispenser.objects.filter(name="films").pause()
    failed = {"state": "failed", "expirations": 5, "finished_at": DbLater(-40)}
    DispenserTask.objects.filter(key="film-2").update(**failed)


def timers() -> None:
    for topic in ("order.timeout", "report"):
        Topic.objects.create(name=topic)
    for number, due_in in enumerate((-720.0, 300.0, 1_740.0), start=40):
        timer(f"order-{number}-unpaid", "order.timeout", due_in)
    timer("morning", "report", 22_000, schedule='{"cron": "30 7 * * 1-5", "tz": "Europe/Berlin"}')
    timer("tidy", "report", 120, schedule='{"every": 300.0}')
    dead = {
        "state": "dead",
        "attempts": 1,
        "outcome": "RuntimeError: no printer",
        "finished_at": timezone.now(),
    }
    timer("evening", "report", -3_000, **dead)
    node: TimerNode = TimerNode.objects.create(name="web-1", topics=["report"])
    TimerNode.objects.filter(pk=node.pk).update(
        holder="web-1/813/MainThread/0d1f", busy_before=DbLater(30), fence=1
    )


def timer(name: str, topic: str, due_in: float, **columns: Any) -> None:
    due = timezone.now() + datetime.timedelta(seconds=due_in)
    Timer.objects.create(name=name, topic_id=topic, due_at=due, busy_before=due, payload="{}", **columns)

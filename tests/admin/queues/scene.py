"""A task type at work, without processes: rows as servers write them."""

from typing import Any

from resourcepool.dialect import DbLater, DbNow
from resourcepool.models import Queue, Server, TaskType
from resourcepool.queues import moving

LIST = "/admin/resourcepool/{}/"


def task_type(name: str = "orders", queues: int = 4, **columns: Any) -> TaskType:
    made: TaskType = TaskType.objects.create(name=name, **columns)
    Queue.objects.bulk_create([Queue(task_type=made, queue_id=f"q{number}") for number in range(queues)])
    return made


def server(of: TaskType, name: str, *, left: float = 60.0, **columns: Any) -> Server:
    """Register a server that is judged dead in so many seconds, and give it its share."""
    usual = {
        "ttl": 60.0,
        "holder": f"{name}/41/main",
        "fence": 1,
        "idle_since": DbNow(),
        "registered_at": DbNow(),
    }
    made: Server = Server.objects.create(
        task_type=of, name=name, busy_before=DbLater(left), **{**usual, **columns}
    )
    moving.reassign("default", of.pk, "test")
    return made


def owners(of: TaskType) -> list[str]:
    """Return who has each of its queues, in their order; "" for nobody."""
    rows = Queue.objects.filter(task_type=of).order_by("pk").select_related("cur_server")
    return [row.cur_server.name if row.cur_server else "" for row in rows]


def asked(of: TaskType) -> list[str]:
    """Return who has asked for each of its queues."""
    rows = Queue.objects.filter(task_type=of).order_by("pk").select_related("req_server")
    return [row.req_server.name if row.req_server else "" for row in rows]

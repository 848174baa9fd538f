"""A queue group with servers, without processes: rows as servers write them."""

from typing import Any

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.models import Queue, QueueGroup, Server
from resourcepool.queues import reassignment

LIST = "/admin/resourcepool/{}/"


def queue_group(name: str = "orders", queues: int = 4, **columns: Any) -> QueueGroup:
    made: QueueGroup = QueueGroup.objects.create(name=name, **columns)
    Queue.objects.bulk_create([Queue(queue_group=made, queue_id=f"q{number}") for number in range(queues)])
    return made


def server(of: QueueGroup, name: str, *, left: float = 60.0, **columns: Any) -> Server:
    """Register a server that is presumed dead after ``seconds``, and give it its share."""
    usual = {
        "ttl": 60.0,
        "holder": f"{name}/41/main",
        "fence": 1,
        "idle_since": DbNow(),
        "registered_at": DbNow(),
    }
    made: Server = Server.objects.create(
        queue_group=of, name=name, busy_before=DbLater(left), **{**usual, **columns}
    )
    reassignment.reassign("default", of.pk, "test")
    return made


def owners(of: QueueGroup) -> list[str]:
    """Return the owner of each of its queues, in order; "": unowned."""
    rows = Queue.objects.filter(queue_group=of).order_by("pk").select_related("cur_server")
    return [row.cur_server.name if row.cur_server else "" for row in rows]

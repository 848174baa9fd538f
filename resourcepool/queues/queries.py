"""Queries for the queues and servers of a queue group."""

from collections.abc import Iterable
from typing import Any

from django.db import router
from django.db.models import Q

from resourcepool.db.dialect import MicrosUntil
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.labels import MAX_LISTED, join_names
from resourcepool.queues.models import Queue, QueueGroup, Server
from resourcepool.queues.planning.assignment import Member
from resourcepool.queues.planning.changes import QueueSnapshot, ServerSnapshot
from resourcepool.translation import gettext_noop as _

COLUMNS = ("pk", "queue_id", "cur_server_id", "req_server_id", "fence", "labels", "pin", "is_retiring")


def using_of_queues() -> str:
    """Return the alias of the database with the queue groups, servers and queues."""
    return str(router.db_for_write(QueueGroup))


def find_queue_group(name: str, using: str) -> QueueGroup:
    """Return the queue group of this name.

    Raises:
        BadOption: it does not exist; the error lists the existing ones.
    """
    queue_group = QueueGroup.objects.using(using).filter(name=str(name)[:200]).first()
    if queue_group is None:
        names = QueueGroup.objects.using(using).order_by("name").values_list("name", flat=True)
        existing = list(names[: MAX_LISTED + 1])
        add = "`manage.py resourcepool_queues add <queue group> <queue> .. --new`"
        if not existing:
            because = Sentence(_("none exists yet; create one with %(command)s"), command=add)
            raise BadOption("queue_group", name, because=because)
        text = _("one of %(names)s; create one with %(command)s")
        raise BadOption("queue_group", name, Sentence(text, names=join_names(existing), command=add))
    return queue_group


def read_servers(queue_group: QueueGroup, using: str, *, spare_overdue: bool = False) -> list[ServerSnapshot]:
    """Return its servers in the order of registration; ``spare_overdue``: presume none of them dead."""
    snapshots = []
    servers = Server.objects.using(using).filter(queue_group=queue_group).with_ages()
    for server in servers.order_by("registered_at", "pk"):
        member = Member(server.pk, server.name, server.weight, server.labels, server.limit)
        is_alive, is_draining = server.micros_left > 0, server.state == Server.State.DRAINING
        snapshots.append(
            ServerSnapshot(member, is_alive, is_draining, server.ttl, is_spared=spare_overdue and not is_alive)
        )
    return snapshots


def read_queues(queue_group: QueueGroup, using: str, *only: Q) -> list[QueueSnapshot]:
    """Return its queues in the order in which they were added; ``only``: conditions that they match."""
    rows = Queue.objects.using(using).filter(*only, queue_group=queue_group)
    columns = rows.order_by("pk").annotate(asked=MicrosUntil("requested_at")).values_list(*COLUMNS, "asked")
    return [snapshot_of(*row) for row in columns]


def snapshot_of(*row: Any) -> QueueSnapshot:
    """Return the snapshot of a queue from its ``COLUMNS`` and the microseconds from now to its request."""
    pk, queue_id, cur, req, fence, labels, pin, is_retiring, asked = row
    requested_ago = None if asked is None else -asked / 1_000_000
    return QueueSnapshot(pk, queue_id, cur, req, fence, labels, pin, is_retiring, requested_ago)


def of_server(server: int) -> Q:
    """Return the condition that this server has the queue or has requested it."""
    return Q(cur_server=server) | Q(req_server=server)


def names(servers: Iterable[ServerSnapshot]) -> dict[int | None, str]:
    """Return the names of the servers, by key."""
    return {server.member.pk: str(server.member) for server in servers}

"""Reads the queues and servers of a queue group."""

from collections.abc import Iterable
from typing import Any

from django.db import router
from django.db.models import Q
from django.utils.translation import gettext_noop as _

from resourcepool.dialect import MicrosUntil
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.labels import MAX_LISTED, join_names
from resourcepool.queues.models import Queue, QueueGroup, Server
from resourcepool.queues.planning.assignment import Member
from resourcepool.queues.planning.changes import QueueSnapshot, ServerSnapshot

COLUMNS = ("pk", "queue_id", "cur_server_id", "req_server_id", "fence", "labels", "pin", "is_retiring")


def using_of_queues() -> str:
    """Return the alias of the database with the queue groups, servers and queues."""
    return str(router.db_for_write(QueueGroup))


def find_queue_group(name: str, using: str) -> QueueGroup:
    """Return the queue group of this name.

    Raises:
        BadOption: there is none; names the existing ones.
    """
    found = QueueGroup.objects.using(using).filter(name=str(name)[:200]).first()
    if found is None:
        known = QueueGroup.objects.using(using).order_by("name").values_list("name", flat=True)
        there_are = list(known[: MAX_LISTED + 1])
        add = "`manage.py resourcepool_queues add <queue group> <queue> .. --new`"
        if not there_are:
            none_yet = Sentence(_("there is none yet; %(command)s makes one"), command=add)
            raise BadOption("queue_group", name, because=none_yet)
        allowed = Sentence(
            _("one of %(names)s; %(command)s makes one"), names=join_names(there_are), command=add
        )
        raise BadOption("queue_group", name, allowed)
    return found


def read_servers(queue_group: QueueGroup, using: str, *, spare_overdue: bool = False) -> list[ServerSnapshot]:
    """Return its servers in the order of registration; ``spare_overdue``: none of them is judged dead."""
    found = []
    servers = Server.objects.using(using).filter(queue_group=queue_group).with_ages()
    for server in servers.order_by("registered_at", "pk"):
        member = Member(server.pk, server.name, server.weight, server.labels, server.limit)
        is_alive, is_draining = server.micros_left > 0, server.state == Server.State.DRAINING
        found.append(
            ServerSnapshot(member, is_alive, is_draining, server.ttl, is_spared=spare_overdue and not is_alive)
        )
    return found


def read_queues(queue_group: QueueGroup, using: str, *only: Q) -> list[QueueSnapshot]:
    """Return its queues, or ``only`` the matching ones, in the order in which they were added."""
    rows = Queue.objects.using(using).filter(*only, queue_group=queue_group)
    found = rows.order_by("pk").annotate(asked=MicrosUntil("requested_at")).values_list(*COLUMNS, "asked")
    return [snapshot_of(*row) for row in found]


def snapshot_of(*row: Any) -> QueueSnapshot:
    """Return a queue as planning sees it, given its ``COLUMNS`` and the microseconds until its request."""
    pk, queue_id, cur, req, fence, labels, pin, is_retiring, asked = row
    asked_ago = None if asked is None else -asked / 1_000_000
    return QueueSnapshot(pk, queue_id, cur, req, fence, labels, pin, is_retiring, asked_ago)


def of_server(server: int) -> Q:
    """Return the condition that this server has a queue, or has asked for it."""
    return Q(cur_server=server) | Q(req_server=server)


def names(servers: Iterable[ServerSnapshot]) -> dict[int | None, str]:
    """Return the names of the servers, by key."""
    return {server.member.pk: str(server.member) for server in servers}

"""Removes the rows of crashed queue servers, if no other queue server is left to do it."""

import contextlib
from typing import Any

from django.db import connections
from django.db.models import Exists, OuterRef

from resourcepool.db.dialect import DbLater
from resourcepool.db.retry import retrying
from resourcepool.exceptions import RowLocked
from resourcepool.jobs import PRUNE
from resourcepool.leases.lease import Lease
from resourcepool.queues import reassignment
from resourcepool.queues.models import QueueGroup, Server
from resourcepool.queues.queries import using_of_queues

GONE_AFTER = 3_600.0  # seconds after which a queue server is not expected to return from an outage


def remove_gone_servers(lease: Lease | None = None) -> int:
    """Remove queue servers without a heartbeat for an hour; their queues become unassigned.

    Skips queue groups with another queue server alive since: that one takes over by itself. A server whose queue is
    locked by an open transaction is left for the next run.

    Args:
        lease: the lease of the job; LeaseLost is raised when it is lost.

    Returns:
        The number of removed queue servers.
    """
    using = using_of_queues()
    servers = Server.objects.using(using).filter(queue_group=OuterRef("pk"))
    recent = servers.filter(busy_before__gte=DbLater(-GONE_AFTER))
    left = QueueGroup.objects.using(using).filter(Exists(servers), ~Exists(recent)).values_list("pk", flat=True)
    removed = 0
    for queue_group in retrying(connections[using], lambda: list(left)):
        if lease is not None:
            lease.ensure_held()
        rows = Server.objects.using(using).filter(queue_group=queue_group)
        before = _count(rows)
        with contextlib.suppress(RowLocked, QueueGroup.DoesNotExist):
            reassignment.reassign(using, queue_group, PRUNE, if_due=True)
        removed += max(0, before - _count(rows))
    return removed


def _count(rows: Any) -> int:
    return int(retrying(connections[rows.db], rows.count))

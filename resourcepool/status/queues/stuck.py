"""Queues that stay with draining servers, because no other server may have them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Min
from django.utils.translation import gettext as _

from resourcepool.queues.models import Queue
from resourcepool.status.queues.no_owner import why_nobody
from resourcepool.status.reading import fetched


@dataclass(frozen=True, slots=True)
class Stuck:
    """How many queues stay with draining servers of a task type; one of them, its server, and why no other takes it."""

    count: int
    server: str
    queue: str
    why: str


def stuck_of(using: str, alive: Mapping[int, Iterable[Any]]) -> dict[int, Stuck]:
    """Return {task type: queues that stay with its draining servers}; two statements, and only if there are any.

    Args:
        alive: {primary key of a task type: the ``ServerStatus`` of its living servers}.
    """
    stuck = {pk: [one for one in servers if one.stays] for pk, servers in alive.items()}
    drained = [one.pk for servers in stuck.values() for one in servers]
    if not drained:
        return {}
    theirs = Queue.objects.using(using).filter(cur_server__in=drained, requested_at=None).order_by()
    firsts = theirs.values("task_type").annotate(first=Min("pk")).values_list("first", flat=True)
    keys = fetched(firsts)
    rows = theirs.filter(pk__in=keys).values_list("task_type", "cur_server", "queue_id", "labels", "pin")
    found = {}
    for pk, owner, queue_id, labels, pin in fetched(rows):
        others = [one for one in alive[pk] if one.pk != owner]
        candidates = [one.as_possible_owner for one in others]
        why = why_nobody(labels, candidates, pin) if others else _("no other server is up")
        name = next(str(one) for one in stuck[pk] if one.pk == owner)
        found[pk] = Stuck(sum(one.stays for one in stuck[pk]), name, queue_id, why)
    return found

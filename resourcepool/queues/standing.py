"""Reads how the queues and servers of a task type stand."""

from collections.abc import Collection, Iterable
from typing import Any

from django.db.models import Q

from resourcepool.dialect import MicrosUntil
from resourcepool.exceptions import BadOption
from resourcepool.queues.assignment import Member
from resourcepool.queues.labels import MOST_LISTED, listed
from resourcepool.queues.models import Queue, Server, TaskType
from resourcepool.queues.planning import Standing, Worker

COLUMNS = ("pk", "queue_id", "cur_server_id", "req_server_id", "fence", "labels", "pin", "is_retiring")


def find_task_type(name: str, using: str) -> TaskType:
    """Return the task type of this name.

    Raises:
        BadOption: there is none; names those that exist.
    """
    found = TaskType.objects.using(using).filter(name=str(name)[:200]).first()
    if found is None:
        known = TaskType.objects.using(using).order_by("name").values_list("name", flat=True)
        there_are = list(known[: MOST_LISTED + 1])
        allowed = f"one of {listed(there_are)}" if there_are else "there is none yet"
        add = "`manage.py resourcepool_queues add <task type> <queue> .. --new`"
        raise BadOption("task_type", name, f"{allowed}; {add} makes one")
    return found


def read_workers(task_type: TaskType, using: str) -> list[Worker]:
    """Return its servers in the order in which they registered."""
    servers = Server.objects.using(using).filter(task_type=task_type).with_ages().order_by("pk")
    return [worker_of(server) for server in servers]


def worker_of(server: Any) -> Worker:
    """Return a server, read ``with_ages``, as planning wants it."""
    member = Member(server.pk, server.name, server.weight, server.labels, server.limit)
    return Worker(
        member, server.micros_left > 0, is_draining=server.state == Server.State.DRAINING, ttl=server.ttl
    )


def read_queues(task_type: TaskType, using: str, *, only: Collection[int] | None = None) -> list[Standing]:
    """Return its queues (those of these keys ``only``) in the order in which they were added."""
    rows = Queue.objects.using(using).filter(task_type=task_type)
    if only is not None:
        rows = rows.filter(pk__in=only)
    found = rows.order_by("pk").annotate(asked=MicrosUntil("requested_at")).values_list(*COLUMNS, "asked")
    return [_standing(*row) for row in found]


def with_parameters(rows: Any) -> list[tuple[Standing, str]]:
    """Return these queues as planning wants them, each with its parameter."""
    found = rows.annotate(asked=MicrosUntil("requested_at")).values_list(*COLUMNS, "asked", "parameter")
    return [(_standing(*row), parameter) for *row, parameter in found]


def _standing(*row: Any) -> Standing:
    pk, queue_id, cur, req, fence, labels, pin, is_retiring, asked = row
    asked_ago = None if asked is None else -asked / 1_000_000
    return Standing(pk, queue_id, cur, req, fence, labels, pin, is_retiring, asked_ago)


def of_server(server: int) -> Q:
    """Return the condition "this server has it, or has asked for it"."""
    return Q(cur_server=server) | Q(req_server=server)


def names(workers: Iterable[Worker]) -> dict[int | None, str]:
    """Return what the servers are called, by key."""
    return {worker.member.pk: str(worker.member) for worker in workers}

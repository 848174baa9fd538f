"""One change by an operator: a transaction that also plans, so the reported changes are the actual ones."""

from collections.abc import Callable
from typing import Any

from resourcepool.database.retry import Unsettled
from resourcepool.queues.models import MAX_BY, Queue, TaskType
from resourcepool.queues.moving import Outcome, reassign
from resourcepool.queues.queries import find_task_type, using_of_queues


def change(
    task_type: str,
    by: str,
    first: Callable[[str, TaskType], object],
    *,
    settle: Callable[[Any], bool] = lambda _queues: False,
) -> None:
    """Make a change to a task type, whose row is locked, and plan, in one transaction.

    Args:
        first: makes the change.
        settle: whether the queues show, after a lost reply, that it was made.
    """
    using = using_of_queues()
    found = find_task_type(task_type, using)

    def settled() -> Outcome:
        if not settle(Queue.objects.using(using)):
            raise Unsettled
        return Outcome([])

    reassign(using, found.pk, by[:MAX_BY], first=lambda locked: first(using, locked), settle=settled)

"""A process that comes back inherits its last run's queues: nothing moves because the database was away."""

from django.db.models import F

from resourcepool.events import say
from resourcepool.queues import moving
from resourcepool.queues.models import Server, TaskType
from resourcepool.queues.planning.changes import Change, What
from resourcepool.queues.queries import of_server, read_queues


def inherit(using: str, task_type: TaskType, old: int, new: Server) -> None:
    """Give ``new`` the queues of server ``old``, under new fences, and its requests and its place in the order.

    Runs in the transaction in which ``new`` registers. Queues that are locked or being removed are left.

    Args:
        old: the primary key of the last run of the same process, which no longer relies on anything. If the row is
            gone, there is nothing to inherit.
    """
    last = Server.objects.using(using).filter(pk=old, task_type=task_type).first()
    if last is None:
        return
    Server.objects.using(using).filter(pk=new.pk).update(registered_at=last.registered_at)
    reason = say("came_back", server=str(last), taker=str(new))
    theirs = [queue for queue in read_queues(task_type, using, of_server(old)) if not queue.is_retiring]
    changes = [
        Change(queue, What.ASSIGNED if queue.cur == old else What.REQUESTED, new.pk, reason) for queue in theirs
    ]
    moving.apply(using, task_type, changes, {old: str(last), new.pk: str(new)})
    # The plan that follows is a separate change.
    TaskType.objects.using(using).filter(pk=task_type.pk).update(generation=F("generation") + 1)
    task_type.generation += 1

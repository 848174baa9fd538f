"""What would change, if; nothing is changed."""

from collections.abc import Sequence
from dataclasses import replace

from resourcepool.queues.changing.servers import named
from resourcepool.queues.ids import checked_ids, known
from resourcepool.queues.planning import changes as planning
from resourcepool.queues.planning.assignment import Member
from resourcepool.queues.planning.changes import Change, Worker
from resourcepool.queues.planning.strategies import STRATEGIES
from resourcepool.queues.queries import find_task_type, read_queues, read_workers, using_of_queues


def preview(
    task_type: str,
    *,
    without: Sequence[str] = (),
    joining: Sequence[Member] = (),
    draining: Sequence[str] = (),
    removing: Sequence[str] = (),
) -> tuple[list[Change], list[Worker]]:
    """Return what would change, and why, if servers left, joined or drained, or queues were removed; changes nothing.

    Args:
        without, draining: names of servers, as for ``drain``.
        joining: servers that do not exist yet; their keys are negative.
        removing: ids of queues.

    Returns:
        The changes, and the servers including the joining ones.
    """
    using = using_of_queues()
    found = find_task_type(task_type, using)
    there, queues = read_workers(found, using), read_queues(found, using)
    leaving, drained = named(there, without), named(there, draining)
    stay = [replace(one, is_draining=True) if one.member.pk in drained else one for one in there]
    workers = [*stay, *map(Worker, joining)]
    gone = set(known(found.name, checked_ids(removing), {queue.queue_id: queue.pk for queue in queues}))
    kept = [replace(queue, is_retiring=True) if queue.pk in gone else queue for queue in queues]
    changes = planning.plan(kept, workers, STRATEGIES[found.strategy], found.drain_within, leaving=leaving)
    return changes, workers

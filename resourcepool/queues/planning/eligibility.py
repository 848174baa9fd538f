"""Groups queues by kind: queues of one kind may go to the same members, so plans need few numbers."""

from collections.abc import Sequence

from resourcepool.queues.planning.assignment import Member, QueueInput, candidates

Kind = tuple[int, ...]  # the members that may have such a queue, as rising positions; (): none


def kinds_of(queues: Sequence[QueueInput], members: Sequence[Member]) -> list[Kind]:
    """Return the kind of each place, in the order of the places."""
    position = {member.pk: index for index, member in enumerate(members)}
    known: dict[tuple[object, str], Kind] = {}
    kinds = []
    for queue in queues:
        wish = (frozenset(queue.labels.items()), queue.pin)
        if wish not in known:
            known[wish] = tuple(position[member.pk] for member in candidates(queue, members))
        kinds.append(known[wish])
    return kinds


def narrowest_first(kind: Kind) -> tuple[int, Kind]:
    """Sort kinds with the fewest members first; kinds of equal length have a fixed order."""
    return len(kind), kind

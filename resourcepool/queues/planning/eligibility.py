"""Queues that the same members may have are of one kind: few numbers to plan with, however many queues there are."""

from collections.abc import Sequence

from resourcepool.queues.planning.assignment import Member, QueueInput, candidates

Kind = tuple[
    int, ...
]  # which members may have such a queue: their positions among the members, rising; (): nobody


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
    """Sort kinds so that those with the least choice choose first; equally long ones have an order of their own."""
    return len(kind), kind

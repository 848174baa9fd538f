"""The servers and queues as the strategies see them, without I/O (R1.2, R1.9)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Member:
    """A server that may get queues.

    Attributes:
        pk: of its row; servers that registered earlier have lower ones.
        weight: its share of the queues relative to the others, from 1.
        labels: the labels it has, e.g. {"zone": "eu"}.
        limit: the maximum number of its queues; None: no limit but its share.
    """

    pk: int
    name: str = ""
    weight: int = 1
    labels: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None

    def __str__(self) -> str:
        return f"{self.name} #{self.pk}"


@dataclass(frozen=True, slots=True)
class QueueInput:
    """A queue and its present assignment.

    Attributes:
        pk: of its row.
        server: pk of the server that has asked for it or, if none has, of its owner; None: nobody.
        owner: pk of the server that has it now; None: nobody.
        labels: a server must have all of these to get it.
        pin: the name of the server that should have it, whenever there is one; "": any.
    """

    pk: int
    server: int | None = None
    owner: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    pin: str = ""


Kind = tuple[int, ...]  # the positions of the members that may have such a queue, ascending; (): none
Targets = dict[int, int | None]  # {pk of a queue: pk of the server that should have it; None: no server may}
Strategy = Callable[[Sequence[QueueInput], Sequence[Member]], Targets]


def candidates(queue: QueueInput, members: Sequence[Member]) -> list[Member]:
    """Return the members with the labels of this queue; if it is pinned, the members of that name, if any."""
    able = [member for member in members if queue.labels.items() <= member.labels.items()]
    named = [member for member in able if queue.pin and member.name == queue.pin]
    return named or able


def capacities(members: Sequence[Member], queues: int) -> list[int]:
    """Return how many of these queues each member may have."""
    return [queues if member.limit is None else member.limit for member in members]


def kinds_of(queues: Sequence[QueueInput], members: Sequence[Member]) -> list[Kind]:
    """Return the kind of each queue: queues of one kind may go to the same members, so plans count kinds."""
    position = {member.pk: index for index, member in enumerate(members)}
    known: dict[tuple[object, str], Kind] = {}
    kinds = []
    for queue in queues:
        wish = (frozenset(queue.labels.items()), queue.pin)
        if wish not in known:
            known[wish] = tuple(position[member.pk] for member in candidates(queue, members))
        kinds.append(known[wish])
    return kinds

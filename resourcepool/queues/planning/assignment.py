"""The servers and queues as the strategies see them; no I/O."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Member:
    """A server that may get queues.

    Attributes:
        pk: primary key of its row; servers that registered earlier have lower keys.
        weight: its share of the queues relative to the others, from 1.
        labels: the labels it has, e.g. {"zone": "eu"}.
        limit: maximum number of its queues; None: unlimited.
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
        pk: primary key of its row.
        server: key of the server that has requested it or, without a request, of its owner; None: neither.
        owner: key of the server that has it; None: unowned.
        labels: a server must have all of these to get it.
        pin: name of the server that should have it whenever it runs; "": any.
    """

    pk: int
    server: int | None = None
    owner: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    pin: str = ""


Kind = tuple[int, ...]  # positions of the members that may have such a queue, ascending
Targets = dict[int, int | None]  # {key of a queue: key of the server that should have it; None: no server may}
Strategy = Callable[[Sequence[QueueInput], Sequence[Member]], Targets]


def candidates(queue: QueueInput, members: Sequence[Member]) -> list[Member]:
    """Return the members with the labels of this queue; if it is pinned, only those of that name, if any."""
    suitable = [member for member in members if queue.labels.items() <= member.labels.items()]
    pinned = [member for member in suitable if queue.pin and member.name == queue.pin]
    return pinned or suitable


def capacities(members: Sequence[Member], queues: int) -> list[int]:
    """Return how many of these queues each member may have."""
    return [queues if member.limit is None else member.limit for member in members]


def kinds_of(queues: Sequence[QueueInput], members: Sequence[Member]) -> list[Kind]:
    """Return the kind of each queue. Queues of one kind may go to the same members, so plans count kinds."""
    position = {member.pk: index for index, member in enumerate(members)}
    kind_by_requirement: dict[tuple[object, str], Kind] = {}
    kinds = []
    for queue in queues:
        requirement = (frozenset(queue.labels.items()), queue.pin)
        if requirement not in kind_by_requirement:
            able = candidates(queue, members)
            kind_by_requirement[requirement] = tuple(position[member.pk] for member in able)
        kinds.append(kind_by_requirement[requirement])
    return kinds

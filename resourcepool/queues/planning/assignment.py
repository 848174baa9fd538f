"""Which server should have which queue: decided without I/O, by one of two strategies (R1.2, R1.9)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Member:
    """A server that may be given queues.

    Attributes:
        pk: of its row; those that registered earlier have lower ones.
        weight: how many queues it gets in proportion to the others, from 1.
        labels: what it is or has, e.g. {"zone": "eu"}.
        limit: it gets no more queues than that; None: as many as fall to its share.
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
    """A queue and where it is.

    Attributes:
        pk: of its row.
        server: pk of the server that has it, or, if one has asked for it, of that one; None: nobody.
        owner: pk of the server that has it now; None: nobody.
        labels: a server must have all of these to get it.
        pin: the name of the server that should have it, whenever one of that name is there; "": any.
    """

    pk: int
    server: int | None = None
    owner: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    pin: str = ""


Targets = dict[
    int, int | None
]  # {pk of a queue: pk of the server that should have it; None: there is none for it}
Strategy = Callable[[Sequence[QueueInput], Sequence[Member]], Targets]


def candidates(queue: QueueInput, members: Sequence[Member]) -> list[Member]:
    """Return the members that may have this queue: those with its labels, of these the one it is pinned to."""
    able = [member for member in members if queue.labels.items() <= member.labels.items()]
    named = [member for member in able if queue.pin and member.name == queue.pin]
    return named or able

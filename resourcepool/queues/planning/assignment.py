"""The servers and queues as the strategies see them, distributions of queues, and fair shares; no I/O."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Member:
    """A server as read.

    Attributes:
        pk: primary key of its row; servers that registered earlier have lower keys.
        weight: its share of the queues relative to the others, from 1.
        labels: the labels it has, e.g. {"zone": "eu"}.
        limit: maximum number of its queues; None: unlimited.
        ttl: seconds without a heartbeat after which it is presumed dead.
        is_spared: its heartbeat is overdue, but it is not presumed dead yet: it keeps its queues and gets no more.
    """

    pk: int
    name: str = ""
    weight: int = 1
    labels: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None
    ttl: float = 0.0
    is_alive: bool = True
    is_draining: bool = False
    is_spared: bool = False

    def __str__(self) -> str:
        return f"{self.name} #{self.pk}"

    @property
    def keeps_queues(self) -> bool:
        """Whether it keeps its queues."""
        return self.is_alive or self.is_spared

    @property
    def gets_queues(self) -> bool:
        """Whether it may get queues."""
        return self.is_alive and not self.is_draining


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """A queue as read.

    Attributes:
        pk: primary key of its row.
        cur, req: keys of its owner, and of the server that has requested it; None: no server.
        labels: a server must have all of these to get it.
        pin: name of the server that should have it whenever it runs; "": any.
        requested_ago: seconds since it was requested; None: it is not requested.
    """

    pk: int
    queue_id: str
    cur: int | None = None
    req: int | None = None
    fence: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    pin: str = ""
    is_retiring: bool = False
    requested_ago: float | None = None

    @property
    def server(self) -> int | None:
        """Key of the server that has requested it or, without a request, of its owner."""
        return self.cur if self.req is None else self.req


Kind = tuple[int, ...]  # positions of the members that may have such a queue, ascending
Targets = dict[int, int | None]  # {key of a queue: key of the server that should have it; None: no server may}
Strategy = Callable[[Sequence[QueueSnapshot], Sequence[Member]], Targets]


def candidates(queue: QueueSnapshot, members: Sequence[Member]) -> list[Member]:
    """Return the members with the labels of this queue; if it is pinned, only those of that name, if any."""
    suitable = [member for member in members if queue.labels.items() <= member.labels.items()]
    pinned = [member for member in suitable if queue.pin and member.name == queue.pin]
    return pinned or suitable


def capacities(members: Sequence[Member], queues: int) -> list[int]:
    """Return how many of these queues each member may have."""
    return [queues if member.limit is None else member.limit for member in members]


def kinds_of(queues: Sequence[QueueSnapshot], members: Sequence[Member]) -> list[Kind]:
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


class Transfer(NamedTuple):
    """A queue of this kind moves from one member to another, given by their positions."""

    kind: Kind
    giver: int
    taker: int


class Distribution:
    """The number of queues of each kind that each member has.

    Attributes:
        capacities: maximum number of queues of each member.
        totals: number of queues of each member; ``parts``: the same by kind, without zeros.
        open_to: the kinds that each member may have.
    """

    def __init__(self, capacities: Sequence[int], kinds: Iterable[Kind]) -> None:
        self.capacities = capacities
        self.totals = [0] * len(capacities)
        self.parts: list[dict[Kind, int]] = [{} for _ in capacities]
        self.open_to: list[list[Kind]] = [[] for _ in capacities]
        for kind in kinds:
            for member in kind:
                self.open_to[member].append(kind)

    def room(self, member: int) -> int:
        """Return how many more queues this member may have."""
        return self.capacities[member] - self.totals[member]

    def add(self, kind: Kind, member: int, amount: int = 1) -> None:
        """Change a member's number of queues of a kind by this amount, which may be negative."""
        self.totals[member] += amount
        number = self.parts[member].get(kind, 0) + amount
        if number:
            self.parts[member][kind] = number
        else:
            del self.parts[member][kind]

    def shift(self, transfers: Iterable[Transfer], amount: int = 1) -> None:
        """Carry out a chain of transfers; only the totals of its two ends change."""
        for kind, giver, taker in transfers:
            self.add(kind, giver, -amount)
            self.add(kind, taker, amount)

    def reached_from(self, starts: Iterable[int]) -> dict[int, Transfer | None]:
        """Return the members that a queue of ``starts`` can reach, nearest first, with the last transfer to each."""
        return self._search(starts, lambda member: self.parts[member], lambda kind: kind, Transfer)

    def reaching(self, end: int) -> dict[int, Transfer | None]:
        """Return the members from which a queue can reach ``end``, nearest first, with the first transfer from each."""
        return self._search(
            [end],
            lambda member: self.open_to[member],
            lambda kind: [giver for giver in kind if kind in self.parts[giver]],
            lambda kind, taker, giver: Transfer(kind, giver, taker),
        )

    def _search(
        self,
        starts: Iterable[int],
        kinds_at: Callable[[int], Iterable[Kind]],
        members_of: Callable[[Kind], Iterable[int]],
        transfer: Callable[[Kind, int, int], Transfer],
    ) -> dict[int, Transfer | None]:
        # Breadth first. A kind leads to the same members from everywhere, so one visit of each kind is enough.
        reached: dict[int, Transfer | None] = dict.fromkeys(starts)
        frontier, visited = list(reached), set[Kind]()
        for member in frontier:
            for kind in [kind for kind in kinds_at(member) if kind not in visited]:
                visited.add(kind)
                fresh = [other for other in members_of(kind) if other not in reached]
                reached.update((other, transfer(kind, member, other)) for other in fresh)
                frontier += fresh
        return reached


def chain(reached: dict[int, Transfer | None], end: int) -> list[Transfer]:
    """Return the transfers between ``end`` and the start of the search."""
    transfers = []
    while (transfer := reached[end]) is not None:
        transfers.append(transfer)
        end = transfer.giver if transfer.taker == end else transfer.taker
    return transfers


def fair_shares(amounts: Mapping[Kind, int], members: Sequence[Member]) -> list[Fraction]:
    """Return each member's fair share of these numbers of queues of each kind.

    All members have the same number per weight, as far as possible. A member with a lower limit has its limit. Members
    that must share more queues among themselves have more, and the others share the rest. A plan in whole numbers that
    differs from the shares by less than one always exists.

    This is the decomposition algorithm for fair flows (Groenevelt 1991): share evenly; if that overloads some members,
    solve for these members with the queues that only they may have, and separately for the rest.
    """
    shares = [Fraction(0)] * len(members)
    subproblems = [(Counter(amounts), set(range(len(members))))]
    while subproblems:
        amount_by_kind, group = subproblems.pop()
        level = _level(amount_by_kind.total(), sorted(group), members)
        overloaded = _overloaded(amount_by_kind, level, len(members))
        if not overloaded or overloaded == group:
            for index, share in level.items():
                shares[index] = share
        else:
            inside = {kind: n for kind, n in amount_by_kind.items() if overloaded.issuperset(kind)}
            outside = _without(amount_by_kind, overloaded)
            subproblems += [(Counter(inside), overloaded), (outside, group - overloaded)]
    return shares


def _level(amount: int, group: Iterable[int], members: Sequence[Member]) -> dict[int, Fraction]:
    """Share an amount by weight, within limits; what exceeds the limits of all members is dropped."""
    level: dict[int, Fraction] = {}
    left, free = amount, list(group)
    while free:
        weight = sum(members[index].weight for index in free)
        even = {index: Fraction(left * members[index].weight, weight) for index in free}
        limits = {index: members[index].limit for index in free}
        capped = {i: Fraction(limit) for i, limit in limits.items() if limit is not None and limit < even[i]}
        level |= capped or even
        left -= int(sum(capped.values()))
        free = [index for index in free if index not in level]
    return level


def _overloaded(amounts: Mapping[Kind, int], level: Mapping[int, Fraction], members: int) -> set[int]:
    """Return the members that must exceed this level to assign every queue."""
    scale = lcm(*(share.denominator for share in level.values()))
    distribution = Distribution([int(level.get(index, 0) * scale) for index in range(members)], amounts)
    overloaded: set[int] = set()
    for kind in sorted(amounts, key=lambda kind: (len(kind), kind)):  # kinds with the fewest members first
        if _distribute(distribution, kind, amounts[kind] * scale):
            overloaded.update(distribution.reached_from(kind))
    return overloaded


def _distribute(distribution: Distribution, kind: Kind, amount: int) -> int:
    """Give this amount of a kind to its members, through chains if they are full; return the undistributed rest."""
    for member in kind:
        part = min(amount, distribution.room(member))
        if part:
            distribution.add(kind, member, part)
            amount -= part
    while amount:
        reached = distribution.reached_from(kind)
        end = next((member for member in reached if distribution.room(member)), None)
        if end is None:
            break
        transfers = chain(reached, end)
        movable = (distribution.parts[transfer.giver][transfer.kind] for transfer in transfers)
        part = min(amount, distribution.room(end), *movable)
        distribution.shift(transfers, part)
        distribution.add(kind, transfers[-1].giver, part)
        amount -= part
    return amount


def _without(amounts: Mapping[Kind, int], overloaded: set[int]) -> Counter[Kind]:
    rest: Counter[Kind] = Counter()
    for kind, amount in amounts.items():
        if others := tuple(index for index in kind if index not in overloaded):
            rest[others] += amount
    return rest

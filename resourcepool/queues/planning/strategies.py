"""The strategies by name, and their use within the limits of the servers: ``sticky`` (default) and ``round_robin``."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heapreplace
from math import gcd, lcm

from resourcepool.queues.planning.assignment import (
    Distribution,
    Kind,
    Member,
    QueueSnapshot,
    Strategy,
    Targets,
    Transfer,
    capacities,
    chain,
    fair_shares,
    kinds_of,
)


def sticky(queues: Sequence[QueueSnapshot], members: Sequence[Member]) -> Targets:
    """Move only the queues that must move for even shares.

    Every member ends up less than one queue from its fair share (see `fair_shares`). Without labels, pins and limits no
    such plan moves fewer queues; with them each chain of moves is the shortest possible, but the minimum is not
    promised. A queue has no server only if no member may have it, or if the limits leave no room in any arrangement.
    """
    kinds = kinds_of(queues, members)
    keepers = _members_that_keep(queues, kinds, members)
    balance = Balance(Counter(kinds), members)
    unassigned: Counter[Kind] = Counter()
    for kind, keeper in zip(kinds, keepers, strict=True):
        if keeper is not None:
            balance.add(kind, keeper)
        elif kind:
            unassigned[kind] += 1
    for kind in sorted(unassigned, key=lambda kind: (len(kind), kind)):  # kinds with the fewest members first
        balance.assign(kind, unassigned[kind])
    balance.even_out()
    owners = _positions([queue.cur for queue in queues], members)
    chosen = select_moves(kinds, keepers, owners, balance.parts)
    return {queue.pk: None if at is None else members[at].pk for queue, at in zip(queues, chosen, strict=True)}


def _members_that_keep(
    queues: Sequence[QueueSnapshot], kinds: Sequence[Kind], members: Sequence[Member]
) -> list[int | None]:
    """Return the position of the member that may keep each queue, or None."""
    room = capacities(members, len(queues))
    keepers = _positions([queue.server for queue in queues], members)
    for index, (keeper, kind) in enumerate(zip(keepers, kinds, strict=True)):
        if keeper is not None and keeper in kind and room[keeper]:
            room[keeper] -= 1
        else:
            keepers[index] = None
    return keepers


def _positions(servers: Sequence[int | None], members: Sequence[Member]) -> list[int | None]:
    position: dict[int | None, int] = {member.pk: index for index, member in enumerate(members)}
    return [position.get(server) for server in servers]


class Balance(Distribution):
    """A distribution with the distance of every member from its fair share, and the moves that reduce it.

    The excess is in exact whole numbers (``unit`` is one queue), as a rounding error would move a queue.
    """

    def __init__(self, amounts: Counter[Kind], members: Sequence[Member]) -> None:
        super().__init__(capacities(members, amounts.total()), amounts)
        shares = fair_shares({kind: amount for kind, amount in amounts.items() if kind}, members)
        self.unit = lcm(*(share.denominator for share in shares))
        self.shares = [int(share * self.unit) for share in shares]

    def excess(self, member: int) -> int:
        """Return how far this member is above its share, in units; negative: below."""
        return self.totals[member] * self.unit - self.shares[member]

    def assign(self, kind: Kind, amount: int) -> None:
        """Give queues of a kind to the members with the least excess, while there is room or moves can make room."""
        least = [(self.excess(member), member) for member in kind if self.room(member)]
        heapify(least)
        for _ in range(amount):
            if least:
                member = least[0][1]
                self.add(kind, member)
                if self.room(member):
                    heapreplace(least, (self.excess(member), member))
                else:
                    heappop(least)
                continue
            reached = self.reached_from(kind)
            ends = [member for member in reached if self.room(member)]
            if not ends:
                return
            transfers = chain(reached, min(ends, key=self.excess))
            self.shift(transfers)
            self.add(kind, transfers[-1].giver)

    def even_out(self) -> None:
        """Move queues until all members are less than one from their share.

        It ends, because each move lowers the sum of squares.
        """
        while transfers := self._next_chain():
            self.shift(transfers)

    def _next_chain(self) -> list[Transfer]:
        excess = [total * self.unit - share for total, share in zip(self.totals, self.shares, strict=True)]
        greatest, least = max(excess, default=0), min(excess, default=0)
        if greatest < self.unit and least > -self.unit:
            return []
        giver, taker = excess.index(greatest), excess.index(least)
        direct = next((kind for kind in self.parts[giver] if taker in kind), None)
        if direct is not None:
            transfers = [Transfer(direct, giver, taker)]
        elif greatest >= self.unit:
            reached = self.reached_from([giver])
            taker = min(reached, key=excess.__getitem__)
            transfers = chain(reached, taker)
        else:
            reached = self.reaching(taker)
            giver = max(reached, key=excess.__getitem__)
            transfers = chain(reached, giver)
        # Whole numbers next to the shares exist, so this always helps; the condition only ensures that the loop ends.
        return transfers if excess[giver] - excess[taker] > self.unit else []


def select_moves(
    kinds: Sequence[Kind],
    keepers: Sequence[int | None],
    owners: Sequence[int | None],
    wanted: Sequence[Mapping[Kind, int]],
) -> list[int | None]:
    """Return the member for each queue, so that every member has the wanted numbers and as many as possible stay.

    First move queues that their new member still owns, which only cancels a request. Then move queues that their keeper
    has requested but does not have, as it has not begun to work on them. Then move the last queues in order.

    Args:
        kinds: of the queues, in their order.
        keepers: position of the member that may keep each queue; None: no member.
        owners: position of the member that has each queue; None: unowned.
        wanted: the number of each kind that every member should have.
    """
    lacking = _lacking(kinds, keepers, wanted)
    targets = list(keepers)

    def move(queue: int, taker: int) -> None:
        targets[queue] = taker
        lacking[kinds[queue], keepers[queue]] += 1
        lacking[kinds[queue], taker] -= 1

    for queue, (kind, keeper, owner) in enumerate(zip(kinds, keepers, owners, strict=True)):
        if lacking[kind, keeper] < 0 and owner is not None and lacking[kind, owner] > 0:
            move(queue, owner)
    takers = {
        kind: iter([member for member in kind for _ in range(lacking[kind, member])]) for kind in set(kinds)
    }
    settled = [queue for queue, keeper in enumerate(keepers) if keeper is not None and keeper == owners[queue]]
    movable = sorted(set(range(len(kinds))).difference(settled))
    for queue in [*movable, *reversed(settled)]:
        if targets[queue] == keepers[queue] and lacking[kinds[queue], keepers[queue]] < 0:
            move(queue, next(takers[kinds[queue]]))
    return targets


def _lacking(
    kinds: Sequence[Kind], keepers: Sequence[int | None], wanted: Sequence[Mapping[Kind, int]]
) -> Counter[tuple[Kind, int | None]]:
    """Return how many queues of a kind each member lacks; negative: surplus. Key None counts unassigned queues."""
    lacking: Counter[tuple[Kind, int | None]] = Counter()
    for member, parts in enumerate(wanted):
        for kind, amount in parts.items():
            lacking[kind, member] += amount
            lacking[kind, None] -= amount
    for kind, keeper in zip(kinds, keepers, strict=True):
        if keeper is not None:
            lacking[kind, keeper] -= 1
            lacking[kind, None] += 1
    return lacking


def round_robin(queues: Sequence[QueueSnapshot], members: Sequence[Member]) -> Targets:
    """Give the queues, in their order, to the members in turn, regardless of their present owners.

    A round has as many passes over the members as the greatest weight (after division by the common divisor), and a
    member takes part in as many of them as its weight: with A of weight 2 and B of weight 1 the order is A B A, A B A.
    A member that may not have a queue, or is full, is skipped. A queue that no member can have stays unowned.

    Not promised: few moves (of 64 queues on 8 servers 53 or 54 move when one leaves, with `sticky` 8), and room for a
    later queue with fewer candidates.
    """
    turn, room = _Turn([member.weight for member in members]), capacities(members, len(queues))
    targets: Targets = {queue.pk: None for queue in queues}
    for queue, kind in zip(queues, kinds_of(queues, members), strict=True):
        if able := [index for index in kind if room[index]]:
            chosen = turn.take(able)
            targets[queue.pk] = members[chosen].pk
            room[chosen] -= 1
    return targets


class _Turn:
    """The weighted turn. Step s belongs to member s % members, in pass s // members of the round."""

    def __init__(self, weights: Sequence[int]) -> None:
        common = gcd(*weights) or 1
        self.weights = [weight // common for weight in weights]
        self.round = max(self.weights, default=0) * len(weights)
        self.step = 0

    def take(self, able: Sequence[int]) -> int:
        """Return the next of these members, and advance to the step after it."""
        step = min(map(self._next_step, able))
        self.step = (step + 1) % self.round
        return step % len(self.weights)

    def _next_step(self, index: int) -> int:
        members = len(self.weights)
        step = self.step + (index - self.step) % members
        return step if step // members < self.weights[index] else self.round + index


STRATEGIES: dict[str, Strategy] = {"sticky": sticky, "round_robin": round_robin}


def plan_within_limits(
    strategy: Strategy, queues: Sequence[QueueSnapshot], members: Sequence[Member]
) -> tuple[Targets, Collection[int]]:
    """Return the targets of the queues, and the keys of queues whose pinned server has no room.

    A queue that no server can take stays with its owner, if the owner may have it. Then the rest is planned again,
    without the pins of queues that overflow, and with lower limits where queues stay.
    """
    inputs, overflow, staying = list(queues), set[int](), Targets()
    by_pk: dict[int | None, Member] = {member.pk: member for member in members}
    limited = _lower_limits(members, Counter(queue.cur for queue in queues if not _may_stay(queue, by_pk)))
    while True:
        targets = strategy(inputs, limited)
        unplaced = [queue for queue in inputs if targets[queue.pk] is None]
        if full := {queue.pk for queue in unplaced if queue.pin}:
            overflow |= full
            inputs = [replace(queue, pin="") if queue.pk in full else queue for queue in inputs]
        elif kept := {queue.pk: queue.cur for queue in unplaced if queue.cur and _may_stay(queue, by_pk)}:
            staying |= kept
            inputs = [queue for queue in inputs if queue.pk not in kept]
            limited = _lower_limits(limited, Counter(kept.values()))
        else:
            return targets | staying, overflow


def _lower_limits(members: Sequence[Member], taken: Counter[int | None]) -> list[Member]:
    """Return the members with their limits lowered by the queues that stay with them."""
    return [
        member if member.limit is None else replace(member, limit=max(0, member.limit - taken[member.pk]))
        for member in members
    ]


def _may_stay(queue: QueueSnapshot, members: Mapping[int | None, Member]) -> bool:
    owner = members.get(queue.cur)
    return owner is not None and queue.labels.items() <= owner.labels.items()

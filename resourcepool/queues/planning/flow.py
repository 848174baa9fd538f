"""The number of queues of each kind that every member has, and the chains of moves that can change it."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from resourcepool.queues.planning.assignment import Kind


class Transfer(NamedTuple):
    """One queue of this kind goes from one member to another (their positions)."""

    kind: Kind
    giver: int
    taker: int


class Distribution:
    """The number of queues of each kind that each member has, none above the member's capacity.

    Attributes:
        capacities: the maximum of each member, of all kinds together.
        totals: the total of each member.
        parts: the same by kind, without kinds of which a member has nothing.
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
        """Give a member more of a kind, or less when the amount is negative."""
        self.totals[member] += amount
        left = self.parts[member].get(kind, 0) + amount
        if left:
            self.parts[member][kind] = left
        else:
            del self.parts[member][kind]

    def shift(self, transfers: Iterable[Transfer], amount: int = 1) -> None:
        """Carry out a chain of transfers: only the totals of its two ends change."""
        for kind, giver, taker in transfers:
            self.add(kind, giver, -amount)
            self.add(kind, taker, amount)

    def reached_from(self, starts: Iterable[int]) -> dict[int, Transfer | None]:
        """Return the members that a queue of these can reach, nearest first, each with the last one to it."""
        return self._search(starts, lambda member: self.parts[member], lambda kind: kind, Transfer)

    def reaching(self, end: int) -> dict[int, Transfer | None]:
        """Return the members from which a queue can reach this one, nearest first, each with its first one."""
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
        # Breadth first. A kind leads to the same members from everywhere, so one visit is enough.
        found: dict[int, Transfer | None] = dict.fromkeys(starts)
        frontier, met = list(found), set[Kind]()
        for member in frontier:
            for kind in [kind for kind in kinds_at(member) if kind not in met]:
                met.add(kind)
                fresh = [other for other in members_of(kind) if other not in found]
                found.update((other, transfer(kind, member, other)) for other in fresh)
                frontier += fresh
        return found


def chain(found: dict[int, Transfer | None], far: int) -> list[Transfer]:
    """Return the transfers between this member and where the search began."""
    transfers = []
    while (transfer := found[far]) is not None:
        transfers.append(transfer)
        far = transfer.giver if transfer.taker == far else transfer.taker
    return transfers

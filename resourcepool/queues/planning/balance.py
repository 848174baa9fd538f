"""Every member's distance from its fair share, and the moves that reduce it."""

from collections import Counter
from collections.abc import Sequence
from heapq import heapify, heappop, heapreplace
from math import lcm

from resourcepool.queues.planning.assignment import Member
from resourcepool.queues.planning.eligibility import Kind
from resourcepool.queues.planning.fair_share import fair_shares
from resourcepool.queues.planning.flow import Spread, Transfer, chain


class Balance(Spread):
    """A spread with the distance of every member from its share.

    The excess is in whole numbers (`one` is one queue), because it must be exact: a rounding error would move a
    queue.
    """

    def __init__(self, amounts: Counter[Kind], members: Sequence[Member]) -> None:
        everything = amounts.total()
        super().__init__([everything if member.limit is None else member.limit for member in members], amounts)
        wanted = Counter({kind: amount for kind, amount in amounts.items() if kind})
        shares = fair_shares(wanted, members)
        self.one = lcm(*(share.denominator for share in shares))
        self.shares = [int(share * self.one) for share in shares]

    def excess(self, member: int) -> int:
        """Return how much more than its share this member has; negative: less."""
        return self.totals[member] * self.one - self.shares[member]

    def settle(self, kind: Kind, amount: int) -> None:
        """Give so many queues of a kind to the members with the least excess, while room is there or can be made."""
        line = [(self.excess(member), member) for member in kind if self.room(member)]
        heapify(line)
        for left in range(amount, 0, -1):
            if not line:
                return self._squeeze_in(kind, left)
            member = line[0][1]
            self.add(kind, member)
            if self.room(member):
                heapreplace(line, (self.excess(member), member))
            else:
                heappop(line)
        return None

    def _squeeze_in(self, kind: Kind, amount: int) -> None:
        for _ in range(amount):
            found = self.reached_from(kind)
            ends = [member for member in found if self.room(member)]
            if not ends:
                return
            transfers = chain(found, min(ends, key=self.excess))
            self.shift(transfers)
            self.add(kind, transfers[-1].giver)

    def even_out(self) -> None:
        """Move queues until all are less than one from their share. Ends, as each move lowers the sum of squares."""
        while transfers := self._next_chain():
            self.shift(transfers)

    def _next_chain(self) -> list[Transfer]:
        excess = [total * self.one - share for total, share in zip(self.totals, self.shares, strict=True)]
        greatest, least = max(excess, default=0), min(excess, default=0)
        if greatest < self.one and least > -self.one:
            return []
        giver, taker = excess.index(greatest), excess.index(least)
        direct = next((kind for kind in self.parts[giver] if taker in kind), None)
        if direct is not None:
            transfers = [Transfer(direct, giver, taker)]
        elif greatest >= self.one:
            found = self.reached_from([giver])
            taker = min(found, key=excess.__getitem__)
            transfers = chain(found, taker)
        else:
            found = self.reaching(taker)
            giver = max(found, key=excess.__getitem__)
            transfers = chain(found, giver)
        # There are whole numbers next to the shares, so this always helps. If it ever did not, it must still end.
        return transfers if excess[giver] - excess[taker] > self.one else []

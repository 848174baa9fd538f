"""Whether those who waited were served in the order of their tickets."""

from bisect import bisect, insort
from collections.abc import Collection

Grant = tuple[int, float]  # ticket, moment of the grant


def places_overtaken(counted: Collection[Grant], others: Collection[Grant] = ()) -> list[int]:
    """Return by how many places each of ``counted`` was overtaken, sorted.

    That is how many tickets with a higher number, taken later that is, were granted before it.

    Args:
        others: grants that may have overtaken, but are not counted themselves: those of the warm-up.
    """
    grants = sorted(
        [(at, ticket, True) for ticket, at in counted] + [(at, ticket, False) for ticket, at in others]
    )
    served: list[int] = []
    found: list[int] = []
    for _, ticket, counts in grants:
        if counts:
            found.append(len(served) - bisect(served, ticket))
        insort(served, ticket)
    return sorted(found)

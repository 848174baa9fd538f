"""Whether those who waited were served in the order of their tickets."""

from collections.abc import Iterable

STEP = (
    0.05  # seconds; two grants closer than this may come in either order: the waiters look one after the other
)


def overtakings(grants: Iterable[tuple[int, float]], step: float = STEP) -> int:
    """Return how many were served more than ``step`` seconds before somebody with an earlier ticket.

    Args:
        grants: (ticket, moment of the claim) of everybody who stood in line.
    """
    count, latest = 0, float("-inf")
    for _, granted_at in sorted(grants):
        count += granted_at < latest - step
        latest = max(latest, granted_at)
    return count

"""Whether anybody works on what a server has: its heartbeat says only that the process lives."""

import math
from typing import Any

from resourcepool.dialect import DbLater

TELLS_EVERY = 3  # heartbeats


class Consumer:
    """What of a process begins work on the queues of its server; the server's row says when it last did.

    It is told with a look, if it is news, in a statement of its own. No clock of its own: moments are those of
    ``leases.clock``.
    """

    def __init__(self, now: float) -> None:
        """Begin at ``now``: from then on somebody should ask for work."""
        self._stirred_at, self._told_at = now, -math.inf
        self._loops: bool | None = None  # None: it has done nothing yet
        self._told: tuple[float, int] | None = None

    def stirs(self, now: float, *, is_loop: bool) -> None:
        """Note that it has begun work, or asked for some; ``is_loop``: by ``queues``, again and again."""
        self._stirred_at = now
        self._loops = bool(self._loops) or is_loop

    def follows(self, other: "Consumer") -> None:
        """Go on as the consumer of the last run, which is the same code of the same process."""
        self._stirred_at, self._loops = other._stirred_at, other._loops

    def tell(self, rows: Any, now: float, in_hand: int, heartbeat: float) -> None:
        """Write into ``rows``, the server's own, when it last stirred and how many queues are in hand; now and then."""
        news = self._stirred_at, in_hand
        if news == self._told or now < self._told_at + TELLS_EVERY * heartbeat:
            return
        # Who begins work only when there is some, by ``working``, may be idle for as long as there is none.
        is_expected = in_hand or self._loops is not False
        moment = DbLater(self._stirred_at - now) if is_expected else None
        rows.update(stirred_at=moment, in_hand=in_hand)
        self._told, self._told_at = news, now

"""Whether code works on the queues of a server: the heartbeat only shows that the process lives."""

import math
from typing import Any

from resourcepool.dialect import DbLater

REPORT_EVERY = 3  # heartbeats


class ActivityReporter:
    """The code that works on a server's queues; the server's row says when it last began work.

    The row is updated in a separate statement after a look, if there is news. Times are of ``database.clock``.
    """

    def __init__(self, now: float, after: "ActivityReporter | None" = None) -> None:
        """Begin at ``now``, when the code should ask for work, or continue ``after``, the same code in the last run."""
        self._last_activity_at: float = now if after is None else after._last_activity_at
        self._loops: bool | None = None if after is None else after._loops  # None: it has done nothing yet
        self._told_at, self._told = -math.inf, (0.0, -1)

    def touch(self, now: float, *, is_loop: bool) -> None:
        """Note that work was begun or asked for; ``is_loop``: by ``queues``, repeatedly."""
        self._last_activity_at = now
        self._loops = bool(self._loops) or is_loop

    def report(self, rows: Any, now: float, in_hand: int, heartbeat: float) -> None:
        """Write the last begin of work and the number of queues in hand into ``rows``, the server's, now and then."""
        news = self._last_activity_at, in_hand
        if news == self._told or now < self._told_at + REPORT_EVERY * heartbeat:
            return
        # Code without a loop, which begins work by ``working``, may be idle as long as there is none.
        is_expected = in_hand or self._loops is not False
        moment = DbLater(self._last_activity_at - now) if is_expected else None
        rows.update(last_activity_at=moment, in_hand=in_hand)
        self._told, self._told_at = news, now

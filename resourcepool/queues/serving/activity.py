"""Reports when code last worked on the queues of a server, as the heartbeat only shows that the process lives."""

import math
from typing import Any

from resourcepool.db.dialect import DbLater

REPORT_EVERY = 3  # heartbeats


class ActivityReporter:
    """Remembers when work on a server's queues last began, and writes it to the server's row.

    The row is updated in a separate statement after a check, if the state has changed. Times are of ``database.clock``.
    """

    def __init__(self, now: float, after: "ActivityReporter | None" = None) -> None:
        """Begin at ``now``, when the code should ask for work, or continue ``after``, the same code in the last run."""
        self._last_activity_at: float = now if after is None else after._last_activity_at
        self._has_loop: bool | None = None if after is None else after._has_loop  # None: no activity yet
        self._reported_at, self._reported = -math.inf, (0.0, -1)

    def touch(self, now: float, *, is_loop: bool) -> None:
        """Note that work was begun or asked for; ``is_loop``: by a loop over ``queues``."""
        self._last_activity_at = now
        self._has_loop = bool(self._has_loop) or is_loop

    def report(self, rows: Any, now: float, in_hand: int, heartbeat: float) -> None:
        """Write the last activity and the number of queues in hand into ``rows``, the server's row, if that is due."""
        state = self._last_activity_at, in_hand
        if state == self._reported or now < self._reported_at + REPORT_EVERY * heartbeat:
            return
        # Code without a loop, which begins work by ``working``, may be idle as long as there is no work.
        is_expected = in_hand or self._has_loop is not False
        moment = DbLater(self._last_activity_at - now) if is_expected else None
        rows.update(last_activity_at=moment, in_hand=in_hand)
        self._reported, self._reported_at = state, now

"""Notices when this process, or the database, was away for so long that other servers could not renew themselves."""

import math

from resourcepool.queues.serving.snapshot import TaskTypeSnapshot

LONG = 2 / 3  # of a server's ttl: it renews itself at least three times in one


class Absence:
    """Whether this server should judge nobody dead, so that servers that were away with it can come back.

    For one ``ttl`` after an outage that it has noticed, and not again before it could judge once: if the database or
    this server is away again and again, dead servers must still be found. A server that noticed no outage judges
    meanwhile, so one with a bad network of its own keeps no queue from the others. Times: see ``database.clock``.
    """

    def __init__(self, now: float, ttl: float, after: "Absence | None" = None) -> None:
        """Begin at ``now``; ``after``: the absence of this server's last run, which was away until now."""
        self._ttl, self._heard_at = ttl, now
        self._may_spare, self.spares_until = True, -math.inf
        if after is not None:
            self._may_spare, self.spares_until = after._may_spare, after.spares_until
            if self._may_spare:
                self._spare(now)

    def goes_on(self, now: float) -> None:
        """Note that the database has just answered, or that this server was busy until now."""
        self._heard_at = now

    def has_answered(self, now: float) -> None:
        """Note that the database has answered after this server had nothing to do."""
        if self._may_spare and self._is_long(now):
            self._spare(now)
        elif now >= self.spares_until:
            self._may_spare = True  # servers that are dead by then are judged now
        self.goes_on(now)

    def spares(self, now: float) -> bool:
        """Whether no server is to be judged dead now."""
        return now < self.spares_until or (self._may_spare and self._is_long(now))

    def plan_in(self, seen: TaskTypeSnapshot) -> float:
        """Return in how many seconds from this look a plan by this server is due."""
        return min(seen.due_in, max(seen.plan_in, self.spares_until - seen.sent_at))

    def _spare(self, now: float) -> None:
        self._may_spare, self.spares_until = False, now + self._ttl

    def _is_long(self, now: float) -> bool:
        return now - self._heard_at > self._ttl * LONG

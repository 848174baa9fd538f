"""When a process notices that it, or the database, was away for so long that the others could not renew themselves."""

import math

from resourcepool.queues.serving.snapshot import TaskTypeSnapshot

LONG = 2 / 3  # of a server's ttl: it renews itself at least three times in one


class Absence:
    """Whether this server had better judge nobody dead: whoever was away with it is to have the chance to come back.

    For one ``ttl`` after an outage that it has noticed, and not again before it could judge once: where the database or
    this server is away time and again, somebody has to. A server that noticed none judges meanwhile, so one whose own
    network is bad keeps no queue from the others. No clock of its own: moments are those of ``leases.clock``.
    """

    def __init__(self, now: float, ttl: float, after: "Absence | None" = None) -> None:
        """Begin at ``now``; ``after``: that of the last run of this server, which was away until now."""
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
            self._may_spare = True  # whoever is dead by then is judged now
        self.goes_on(now)

    def spares(self, now: float) -> bool:
        """Whether nobody is to be judged dead now."""
        return now < self.spares_until or (self._may_spare and self._is_long(now))

    def plan_in(self, seen: TaskTypeSnapshot) -> float:
        """Return in how many seconds from this look on a plan is this server's business."""
        return min(seen.due_in, max(seen.plan_in, self.spares_until - seen.sent_at))

    def _spare(self, now: float) -> None:
        self._may_spare, self.spares_until = False, now + self._ttl

    def _is_long(self, now: float) -> bool:
        return now - self._heard_at > self._ttl * LONG

"""When a process notices that it, or the database, was away for so long that the others could not renew themselves."""

import math

from resourcepool.queues.looking import Look

LONG = 2 / 3  # of a server's ttl: it renews itself at least three times in one


class Absence:
    """Whether this server had better judge nobody dead: whoever was away with it is to have the chance to come back.

    For one ``ttl`` after an outage that it has noticed, and not again for as long: where the database or this server is
    slow time and again, somebody has to judge. A server that noticed none judges meanwhile, so one whose own
    network is bad keeps no queue from the others. No clock of its own: moments are those of ``leases.clock``.
    """

    def __init__(self, now: float, ttl: float, *, has_just_ended: bool) -> None:
        """Begin at ``now``; ``has_just_ended``: this is the next run of a server that was away."""
        self._ttl, self._heard_at = ttl, now
        self.spares_until = now + ttl if has_just_ended else -math.inf

    def goes_on(self, now: float) -> None:
        """Note that the database has just answered, or that this server was busy until now."""
        self._heard_at = now

    def has_answered(self, now: float) -> None:
        """Note that the database has answered after this server had nothing to do."""
        if self._is_outage(now):
            self.spares_until = now + self._ttl
        self.goes_on(now)

    def spares(self, now: float) -> bool:
        """Whether nobody is to be judged dead now."""
        return now < self.spares_until or self._is_outage(now)

    def plan_in(self, seen: Look) -> float:
        """Return in how many seconds from this look on a plan is this server's business."""
        return min(seen.due_in, max(seen.plan_in, self.spares_until - seen.sent_at))

    def _is_outage(self, now: float) -> bool:
        is_long = now - self._heard_at > self._ttl * LONG
        return is_long and now > self.spares_until + self._ttl

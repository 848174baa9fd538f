"""When a server looks at the database again."""

import random

from resourcepool.queues.serving.snapshot import TaskTypeSnapshot

HURRY = 3  # heartbeats for which a server that has asked for queues looks more often
SPREAD = 0.2  # seconds over which servers that notice a death spread their plans: the first one is enough


class Pace:
    """How often one server looks, by the settings that it last saw; times are by this process's clock."""

    def __init__(self, ttl: float) -> None:
        """Look so often that a server of this ``ttl``, in seconds, trusts itself, whatever the present settings."""
        self._ttl = ttl
        self._hurries_until = 0.0  # requested queues may come at any moment

    def note(self, seen: TaskTypeSnapshot, *, is_awaiting: bool) -> None:
        """Note whether it has asked for queues that it does not have yet."""
        self._hurries_until = seen.sent_at + HURRY * seen.heartbeat_every if is_awaiting else 0.0

    def soonest(self, seen: TaskTypeSnapshot) -> float:
        """Return the minimum seconds between two looks."""
        return min(seen.reload_every, self._ttl / 3)

    def next_look(self, seen: TaskTypeSnapshot, plan_in: float) -> float:
        """Return when to look again; ``plan_in``: seconds until a plan is due."""
        wait = min(seen.heartbeat_every, self._ttl / 3)
        wait = min(wait, plan_in + random.uniform(0, SPREAD))  # noqa: S311 (not a secret)
        if seen.sent_at < self._hurries_until:
            wait = min(wait, self.soonest(seen))
        return seen.sent_at + max(wait, self.soonest(seen))

"""What a process does for a pool now and then, and no more often than that."""

from resourcepool.leases.clock import monotonic
from resourcepool.leases.table import Model

REVIVE_EVERY = 2.0  # seconds
TIDY_EVERY = 60.0


class Upkeep:
    """When this process last did what for which pool."""

    def __init__(self) -> None:
        self._done_at: dict[tuple[Model, str, str], float] = {}

    def is_due(self, what: str, model: Model, using: str, every: float) -> bool:
        """Tell whether ``what`` has not been done for this pool for ``every`` seconds, and note it as done."""
        which, now = (model, using, what), monotonic()
        due = now - self._done_at.get(which, float("-inf")) > every
        if due:
            self._done_at[which] = now
        return due

    def revive(self, model: Model, using: str) -> None:
        """Bring back what was out of service only until now; for when nothing is free."""
        if self.is_due("revive", model, using, REVIVE_EVERY):
            model.revive(using)


upkeep = Upkeep()

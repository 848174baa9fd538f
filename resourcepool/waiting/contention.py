"""Whether those who ask for rows of a model have to wait, and for how long, going by what happened here a moment ago.

Only guesses: which of two ways is tried first, and when to look first. All are right in any case.
"""

from resourcepool.leases.clock import monotonic
from resourcepool.leases.table import Model
from resourcepool.waiting.backoff import Speed

LATELY = 2.0  # seconds


class Contention:
    """Remembers for a moment that somebody had to wait."""

    def __init__(self) -> None:
        self._until: dict[tuple[Model, str], float] = {}

    def note(self, model: Model, using: str, *, had_to_wait: bool) -> None:
        """Note whether somebody has just had to wait."""
        if had_to_wait:
            self._until[model, using] = monotonic() + LATELY
        elif self._until:
            self._until.pop((model, using), None)

    def is_likely(self, model: Model, using: str, within: float = LATELY) -> bool:
        """Tell whether the next one is likely to have to wait, as one had ``within`` the last so many seconds."""
        return bool(self._until) and self._until.get((model, using), 0.0) > monotonic() + LATELY - within


acquiring = Contention()  # whether a request had to stand in line
releasing = Contention()  # whether a release found somebody in line

_speeds: dict[tuple[Model, str], Speed] = {}


def speed_of(model: Model, using: str) -> Speed:
    """Return what was learned about the line for rows of ``model``."""
    found = _speeds.get((model, using))
    return _speeds.setdefault((model, using), Speed()) if found is None else found

"""How long a bad resource is quarantined: twice as long with every strike (R0.4)."""

import datetime
import random
from dataclasses import dataclass

from resourcepool import options
from resourcepool.conf import setting

FORGIVEN_AFTER = datetime.timedelta(days=1)  # in service without a strike
JITTER = 0.25


@dataclass(frozen=True, slots=True)
class QuarantinePolicy:
    """The first delay and the longest (the document's one day), in seconds."""

    base: float
    cap: float

    @classmethod
    def from_settings(cls) -> "QuarantinePolicy":
        """Read RESOURCEPOOL["QUARANTINE"]; raises BadOption that names the mistake."""
        chosen = setting("QUARANTINE")
        base = options.seconds("RESOURCEPOOL['QUARANTINE']['base']", chosen["base"], least=0.001)
        cap = options.seconds(
            "RESOURCEPOOL['QUARANTINE']['cap']", chosen["cap"], least=base, most=30 * options.DAY
        )
        return cls(base, cap)


def quarantine_seconds(strikes: int, policy: QuarantinePolicy, chance: float | None = None) -> float:
    """Return for how many seconds to quarantine a resource after its ``strikes``-th consecutive strike.

    Args:
        strikes: 1 for the first.
        chance: from 0 to 1; up to a quarter is added, so that resources that failed together return at different times.
    """
    spread = random.random() if chance is None else chance  # noqa: S311 (jitter)
    doubled = policy.base * 2.0 ** min(strikes - 1, 60)
    return min(doubled * (1 + JITTER * spread), policy.cap)


def next_strikes(strikes: int, last: datetime.datetime | None, now: datetime.datetime) -> int:
    """Return the number of this strike: one more than before, or 1 again after a day without any."""
    return 1 if last is None or now - last > FORGIVEN_AFTER else strikes + 1

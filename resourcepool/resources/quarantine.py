"""The duration of quarantines: doubled with every consecutive strike."""

import datetime
import random
from dataclasses import dataclass

from resourcepool import options
from resourcepool.conf import setting

STRIKES_RESET_AFTER = datetime.timedelta(days=1)  # without a strike
JITTER = 0.25


@dataclass(frozen=True, slots=True)
class QuarantinePolicy:
    """The first and the longest duration, in seconds."""

    base: float
    cap: float

    @classmethod
    def from_settings(cls) -> "QuarantinePolicy":
        """Read RESOURCEPOOL["QUARANTINE"]; raises BadOption."""
        chosen = setting("QUARANTINE")
        base = options.seconds("RESOURCEPOOL['QUARANTINE']['base']", chosen["base"], least=0.001)
        cap = options.seconds(
            "RESOURCEPOOL['QUARANTINE']['cap']", chosen["cap"], least=base, most=30 * options.DAY
        )
        return cls(base, cap)


def quarantine_seconds(strikes: int, policy: QuarantinePolicy, chance: float | None = None) -> float:
    """Return the seconds of quarantine after consecutive strike number ``strikes``.

    Args:
        strikes: 1 for the first.
        chance: 0 to 1, default random. It adds up to a quarter, so that resources that failed together return at
            different times.
    """
    spread = random.random() if chance is None else chance  # noqa: S311 (jitter)
    doubled = policy.base * 2.0 ** min(strikes - 1, 60)
    return min(doubled * (1 + JITTER * spread), policy.cap)


def next_strikes(strikes: int, last: datetime.datetime | None, now: datetime.datetime) -> int:
    """Return the number of a new strike: one more than before, or 1 after a day without strikes."""
    return 1 if last is None or now - last > STRIKES_RESET_AFTER else strikes + 1

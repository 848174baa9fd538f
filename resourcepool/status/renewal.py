"""Whether a holder still renews its lease: a dead or cut-off one stops, well before the lease expires."""

from dataclasses import dataclass
from typing import ClassVar

from django.utils.translation import gettext as _

from resourcepool.status.durations import duration

LATE = 1.5  # times the usual interval, after which it is overdue
ROUNDING = 0.1  # seconds


@dataclass(frozen=True, slots=True)
class Renewal:
    """The last renewal of a running lease, or its grant.

    Attributes:
        ago: how many seconds ago it was.
        every: how often its keeper renews it, in seconds.
    """

    ago: float
    every: float

    ALSO: ClassVar = ("is_overdue",)

    @property
    def is_overdue(self) -> bool:
        """Whether its holder should have renewed it by now."""
        return self.ago > LATE * self.every

    def __str__(self) -> str:
        times = {"time": duration(self.ago), "every": duration(self.every)}
        if self.is_overdue:
            return _("%(time)s ago: overdue (due every %(every)s)") % times
        return _("%(time)s ago (due every %(every)s)") % times


def renewal(ttl: float | None, expires_in: float) -> Renewal | None:
    """Return the last renewal of a lease that lasts for ``ttl`` seconds after each renewal.

    Args:
        ttl: from the history; None: unknown.
        expires_in: until it expires, in seconds.

    Returns:
        None when it cannot be known.
    """
    if ttl is None or expires_in > ttl + ROUNDING:
        return None
    return Renewal(max(0.0, ttl - expires_in), ttl / 3)

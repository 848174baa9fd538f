"""The options a lease was acquired with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MIN_TTL = 0.1  # seconds


@dataclass(frozen=True, slots=True)
class Terms:
    """The options a lease was acquired with; times in seconds.

    Attributes:
        ttl: how long the grant lasts after each renewal.
        holder: who has it, for people to read; "": every claim is made under a new name (``default_holder``).
        holder_is_unique: no other claim ever uses that text, so it identifies the owner of an unconfirmed claim.
        cooldown: how long the row rests after the release.
        max_hold: it is not renewed beyond this long after the grant; None: as long as the holder lives.
        leak_after: held for longer it is reported as leaked; None: never.
        renew_every: how often it is renewed; None: three times per ttl.
        renew_while: called before each renewal; while it returns false, nothing is renewed, until the lease expires;
            None: always renew.
        on_lost: called with the ``Lease``, once, from a background thread, as soon as the loss is noticed.
        is_recorded: whether its events are written to the history.
    """

    ttl: float
    holder: str
    holder_is_unique: bool = False
    cooldown: float = 0.0
    max_hold: float | None = None
    leak_after: float | None = None
    renew_every: float | None = None
    renew_while: Callable[[], bool] | None = None
    on_lost: Callable[[Any], object] | None = None
    is_recorded: bool = False

    @property
    def may_renew(self) -> bool:
        """Whether the holder still does the work that the lease is for."""
        return self.renew_while is None or self.renew_while()


def margin(ttl: float) -> float:
    """Return how many seconds before the database's own deadline a holder stops trusting a lease."""
    return min(ttl / 10, 2.0)

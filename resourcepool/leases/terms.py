"""What a lease was asked for with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MIN_TTL = 0.1  # seconds


@dataclass(frozen=True, slots=True)
class Terms:
    """What a lease was asked for with; times in seconds.

    Attributes:
        ttl: how long the grant lasts after each renewal.
        holder: who has it, for people to read; "": every claim is made under a new name (``default_holder``).
        holder_is_unique: nobody else ever writes that text, so it tells whose claim an unconfirmed one was.
        cooldown: how long the row rests after the release.
        max_hold: it is not renewed beyond this long after the grant; None: as long as the holder lives.
        leak_after: held for longer it is reported as leaked; None: never.
        renew_every: how often it is renewed; None: three times per ttl.
        renew_while: asked before each renewal; while it says no, nothing is renewed, until it lapses; None: always.
        on_lost: called with the ``Lease``, once, from a background thread, as soon as the loss is noticed.
        is_recorded: what becomes of it is written into the history.
    """

    ttl: float
    holder: str
    holder_is_unique: bool = False
    cooldown: float = 0.0
    max_hold: float | None = None
    leak_after: float | None = None
    renew_every: float | None = None
    renew_while: Callable[[], bool] | None = None
    on_lost: Callable[[Any], None] | None = None
    is_recorded: bool = False

    @property
    def may_renew(self) -> bool:
        """Whether whoever holds it still does what it is for."""
        return self.renew_while is None or self.renew_while()


def margin(ttl: float) -> float:
    """Return how many seconds before the database's own deadline a holder stops trusting a lease."""
    return min(ttl / 10, 2.0)

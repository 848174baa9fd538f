"""How long a holder may rely on its grant without asking, by its own clock (invariant 2)."""

from resourcepool.events import say
from resourcepool.leases.terms import Terms, margin


class Trust:
    """The window in which a handle relies on its grant; each confirmed renewal moves its end.

    It counts from when the renewal was *sent*, and ends a margin before ``ttl`` has passed since, so never later than
    in the database. All times are by this process's own clock, in seconds.

    Attributes:
        granted_at, sent_at: when the claim, and the last confirmed renewal, were sent.
        lasts: for how many seconds after ``sent_at`` the row is the holder's in the database.
        until: when the handle stops trusting itself.
        due_at: when it should be renewed next.
    """

    __slots__ = ("_terms", "due_at", "granted_at", "lasts", "sent_at", "until")

    def __init__(
        self, terms: Terms, granted_at: float, *, is_proven: bool, first_ttl: float | None = None
    ) -> None:
        """Begin the window with the grant.

        Args:
            is_proven: False: a rollback would undo the claim, so it is renewed at once.
            first_ttl: how long the grant lasts until its first renewal, in seconds; None: its ttl.
        """
        self._terms, self.granted_at = terms, granted_at
        self._count(granted_at, terms.ttl if first_ttl is None else min(first_ttl, terms.ttl))
        if not is_proven:
            self.due_at = 0.0

    def _count(self, sent_at: float, lasts: float) -> None:
        self.sent_at, self.lasts = sent_at, lasts
        until = sent_at + lasts - margin(lasts)
        self.until = until if self._terms.max_hold is None else min(until, self._held_until)
        self.due_at = sent_at + min(self._terms.renew_every or self._terms.ttl / 3, lasts / 3)

    def next_ttl(self, now: float) -> float:
        """Return how many seconds to renew it for: its ttl, but not beyond ``max_hold``."""
        if self._terms.max_hold is None:
            return self._terms.ttl
        return max(0.0, min(self._terms.ttl, self.granted_at + self._terms.max_hold - now))

    def confirm(self, sent_at: float) -> None:
        """Note that the renewal sent at ``sent_at`` was granted."""
        self._count(max(self.sent_at, sent_at), self._terms.ttl)

    def why_over(self, now: float) -> str:
        """Return why it is over ``now``, in words."""
        if self._terms.max_hold is not None and now >= self._held_until:
            return say("max_hold", seconds=self._terms.max_hold)
        return say("not_renewed_in_ttl" if self.lasts == self._terms.ttl else "not_renewed", seconds=self.lasts)

    @property
    def _held_until(self) -> float:
        return self.granted_at + (self._terms.max_hold or 0.0) - margin(self._terms.ttl)

"""For how long a holder may rely on its grant without asking, by its own clock (invariant 2)."""

from resourcepool.leases.terms import Terms, margin


class Trust:
    """The window in which a handle relies on its grant; each confirmed renewal moves its end.

    It counts from when the renewal was *sent*, and ends a margin before ``ttl`` has passed since: so never later than
    in the database. All moments are of this process's own clock, in seconds.
    """

    def __init__(
        self, terms: Terms, granted_at: float, *, is_proven: bool, first_ttl: float | None = None
    ) -> None:
        """Begin it with the grant.

        Args:
            is_proven: False: a rollback would undo the claim, so it is renewed at once.
            first_ttl: how long the grant lasts until its first renewal, in seconds; None: its ttl.
        """
        self._terms, self._is_proven = terms, is_proven
        self.lasts = terms.ttl if first_ttl is None else min(first_ttl, terms.ttl)
        self.granted_at = self.sent_at = granted_at

    @property
    def until(self) -> float:
        """The moment at which the handle stops trusting itself."""
        until = self.sent_at + self.lasts - margin(self.lasts)
        return until if self._terms.max_hold is None else min(until, self._held_until)

    @property
    def due_at(self) -> float:
        """The moment at which it should be renewed next."""
        every = self._terms.renew_every or self._terms.ttl / 3
        return self.sent_at + min(every, self.lasts / 3) if self._is_proven else 0.0

    def next_ttl(self, now: float) -> float:
        """Return how long to renew it for, in seconds: its ttl, but not beyond ``max_hold``."""
        if self._terms.max_hold is None:
            return self._terms.ttl
        return max(0.0, min(self._terms.ttl, self.granted_at + self._terms.max_hold - now))

    def confirm(self, sent_at: float) -> None:
        """Note that a renewal which left at ``sent_at`` was granted."""
        self.sent_at, self._is_proven, self.lasts = max(self.sent_at, sent_at), True, self._terms.ttl

    def why_over(self, now: float) -> str:
        """Return why it is over ``now``, in words."""
        if self._terms.max_hold is not None and now >= self._held_until:
            return f"held for max_hold={self._terms.max_hold:g} s"
        return f"not renewed within {'ttl=' if self.lasts == self._terms.ttl else ''}{self.lasts:g} s"

    @property
    def _held_until(self) -> float:
        return self.granted_at + (self._terms.max_hold or 0.0) - margin(self._terms.ttl)

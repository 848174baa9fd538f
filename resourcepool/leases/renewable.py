"""The interface of a lease to the keeper."""

from collections.abc import Hashable, Sequence
from typing import Any, Protocol

from resourcepool.leases.table import Model
from resourcepool.leases.terms import Terms, Trust


class Renewable(Hashable, Protocol):
    """A lease as the keeper uses it; see ``BaseLease``."""

    model: Model
    using: str
    pk: Any
    fence: int
    terms: Terms
    trust: Trust
    is_delivered: bool

    @property
    def is_ending(self) -> bool:
        """Whether a thread is releasing it or handing it over now."""

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction of this process locks its row."""

    @property
    def is_orphaned(self) -> bool:
        """Whether no code can release it."""

    @property
    def leaks_at(self) -> float:
        """The time, by this process's clock, from which it counts as leaked; infinity: never, or already reported."""

    def report_leak(self, why: str) -> None:
        """Report once that it may be leaked."""

    def mark_released(self) -> None:
        """Mark it as released, after a batch with others was."""

    @staticmethod
    def after_batch_release(using: str, model: Model, pks: Sequence[Any]) -> None:
        """Called once after the leases of these rows were released together."""

    def lose(self, reason: str, trust: Trust | None = None) -> None:
        """Mark the grant of ``trust`` as lost."""

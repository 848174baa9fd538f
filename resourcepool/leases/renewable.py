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
    _terms: Terms
    _trust: Trust
    _is_delivered: bool

    @property
    def _is_ending(self) -> bool:
        """Whether a thread is releasing it or handing it over now."""

    @property
    def _is_in_transaction(self) -> bool:
        """Whether a transaction of this process locks its row."""

    @property
    def _is_orphaned(self) -> bool:
        """Whether no code can release it."""

    @property
    def _leaks_at(self) -> float:
        """The time, by this process's clock, from which it counts as leaked; infinity: never, or already reported."""

    def _report_leak(self, why: str) -> None:
        """Report once that it may be leaked."""

    def _mark_released(self) -> None:
        """Mark it as released, after a batch with others was."""

    @staticmethod
    def _after_batch_release(using: str, model: Model, pks: Sequence[Any]) -> None:
        """Called once after the leases of these rows were released together."""

    def _lose(self, reason: str, trust: Trust | None = None) -> None:
        """Mark the grant of ``trust`` as lost."""

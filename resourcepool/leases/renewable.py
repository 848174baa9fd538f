"""The part of a lease that the keeper uses."""

from collections.abc import Hashable, Sequence
from typing import Any, Protocol

from resourcepool.leases.table import Model
from resourcepool.leases.terms import Terms, Trust


class Renewable(Hashable, Protocol):
    """A lease that is renewed, lost or forgotten, and released together with others; see ``Lease``."""

    model: Model
    using: str
    pk: Any
    fence: int
    terms: Terms
    trust: Trust
    is_delivered: bool

    @property
    def is_ending(self) -> bool:
        """Whether a thread is giving it up at this moment."""

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction of this process has the row locked."""

    @property
    def is_orphaned(self) -> bool:
        """Whether nobody can give it back."""

    @property
    def leaks_at(self) -> float:
        """The time, by this process's clock, from which it counts as leaked; infinity: never, or already reported."""

    def report_leak(self, why: str) -> None:
        """Report once that it was probably forgotten."""

    def mark_released(self) -> None:
        """Note that it has been released together with others."""

    @staticmethod
    def after_batch_release(using: str, model: Model, pks: Sequence[Any]) -> None:
        """Called once after several leases of ``model``, of the rows with these keys, have been released together."""

    def lose(self, reason: str, trust: Trust | None = None) -> None:
        """Note the loss of the grant that ``trust`` belongs to."""

"""A lease as far as the keeper asks it for something."""

from collections.abc import Hashable
from typing import Any, Protocol

from resourcepool.leases.table import Model
from resourcepool.leases.terms import Terms
from resourcepool.leases.trust import Trust


class Renewable(Hashable, Protocol):
    """What is renewed, found lost or forgotten, and released together with others; see ``KeptLease``."""

    model: Model
    using: str
    pk: Any
    fence: int
    terms: Terms
    trust: Trust
    is_delivered: bool

    @property
    def is_ending(self) -> bool:
        """Whether somebody is giving it up at this moment."""

    @property
    def is_in_transaction(self) -> bool:
        """Whether the row is locked by a transaction of this process."""

    @property
    def leaks_at(self) -> float:
        """The moment of this process's clock from which on it counts as leaked; infinity: never, or told."""

    def report_leak(self, why: str) -> None:
        """Tell once that it was probably forgotten."""

    def was_released(self) -> None:
        """Note that it has been released together with others."""

    @staticmethod
    def were_released(using: str, model: Model) -> None:
        """Called once after several leases of ``model`` have been released together."""

    def lose(self, reason: str, trust: Trust | None = None) -> None:
        """Note the loss of the grant that ``trust`` is of."""

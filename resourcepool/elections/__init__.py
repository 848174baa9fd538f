"""Leader election: one of all campaigning processes leads."""

from typing import TYPE_CHECKING

from resourcepool.lazy import lazy_names

__all__ = ["Election", "Leader", "Term"]

if TYPE_CHECKING:
    from resourcepool.elections.election import Election, Leader, Term
else:
    __getattr__, __dir__ = lazy_names(
        __name__, {"Election": "election", "Leader": "election", "Term": "election"}
    )

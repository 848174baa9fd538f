"""Leader election: one of all campaigning processes leads."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from resourcepool.elections.election import Election
    from resourcepool.elections.term import Leader, Term

__all__ = ["Election", "Leader", "Term"]


def __getattr__(name: str) -> Any:
    """Import names on first use: Django imports this package before its models are ready."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from resourcepool.elections import election

    return getattr(election, name)  # that module imports the others, too

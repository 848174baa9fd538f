"""Elections: of all processes that campaign for the same thing, one leads."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from resourcepool.elections.election import Election
    from resourcepool.elections.term import Leader, Term

__all__ = ["Election", "Leader", "Term"]


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is: Django imports this package before there are models."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from resourcepool.elections import election

    return getattr(election, name)  # which imports the others, too

"""Hand out things that only one process may use at a time, with nothing but the project's SQL database."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Resource", "__version__", "release_on_sigterm"]

if TYPE_CHECKING:
    from resourcepool.leases.shutdown import release_on_sigterm
    from resourcepool.resources.resource import Resource


def __getattr__(name: str) -> Any:
    # Lazy, because Django imports this package before its models may be loaded.
    if name == "release_on_sigterm":
        from resourcepool.leases.shutdown import release_on_sigterm

        return release_on_sigterm
    if name == "Resource":
        from resourcepool.resources.resource import Resource

        return Resource
    raise AttributeError(f"module 'resourcepool' has no attribute {name!r}")

"""Hand out things that only one process may use at a time, with nothing but the project's SQL database."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "Checker",
    "Finding",
    "Resource",
    "ResourceLease",
    "Verdict",
    "__version__",
    "release_on_sigterm",
]

if TYPE_CHECKING:
    from resourcepool.leases.shutdown import release_on_sigterm
    from resourcepool.resources.lease import ResourceLease
    from resourcepool.resources.resource import Resource
    from resourcepool.resources.state import Verdict
    from resourcepool.validity.checker import Checker, Finding

_HOMES = {
    "Checker": "resourcepool.validity.checker",
    "Finding": "resourcepool.validity.checker",
    "Resource": "resourcepool.resources.resource",
    "ResourceLease": "resourcepool.resources.lease",
    "Verdict": "resourcepool.resources.state",
    "release_on_sigterm": "resourcepool.leases.shutdown",
}


def __getattr__(name: str) -> Any:
    # Lazy, because Django imports this package before its models may be loaded.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'resourcepool' has no attribute {name!r}")

"""Hand out things that only one process may use at a time, with nothing but the project's SQL database."""

from typing import TYPE_CHECKING

from resourcepool.lazy import lazily

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
    "Checker": "validity.checker",
    "Finding": "validity.checker",
    "Resource": "resources.resource",
    "ResourceLease": "resources.lease",
    "Verdict": "resources.state",
    "release_on_sigterm": "leases.shutdown",
}

__getattr__ = lazily(__name__, _HOMES)

"""Lease resources that one process at a time may use, with only the project's SQL database."""

from typing import TYPE_CHECKING

from resourcepool.lazy import lazy_names

__version__ = "0.1.0a1"
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
    from resourcepool.health_checks.checker import Checker, Finding
    from resourcepool.leases.shutdown import release_on_sigterm
    from resourcepool.resources.lease import ResourceLease
    from resourcepool.resources.resource import Resource
    from resourcepool.resources.state import Verdict
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Checker": "health_checks.checker",
            "Finding": "health_checks.checker",
            "Resource": "resources.resource",
            "ResourceLease": "resources.lease",
            "Verdict": "resources.state",
            "release_on_sigterm": "leases.shutdown",
        },
        "__version__",
        "elections",
        "exceptions",
        "locks",
        "models",
        "queues",
        "signals",
        "taskqueue",
    )

"""Import-only: which tables exist, and the names that users import."""

from resourcepool.history.models import Dashboard, Event, Sample
from resourcepool.jobs.models import Job
from resourcepool.leases.models import AbstractLease, Ticket
from resourcepool.resources.models import AbstractResource, Proxy
from resourcepool.resources.pool import Pool

__all__ = [
    "AbstractLease",
    "AbstractResource",
    "Dashboard",
    "Event",
    "Job",
    "Pool",
    "Proxy",
    "Sample",
    "Ticket",
]

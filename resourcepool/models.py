"""Import-only: which tables exist, and the names that users import."""

from resourcepool.leases.models import AbstractLease, Ticket
from resourcepool.resources.models import AbstractResource, Proxy
from resourcepool.resources.pool import Pool

__all__ = ["AbstractLease", "AbstractResource", "Pool", "Proxy", "Ticket"]

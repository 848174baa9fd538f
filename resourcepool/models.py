"""Import-only: which tables exist, and the names that users import."""

from resourcepool.elections.models import Leadership
from resourcepool.history.models import Dashboard, Event, Sample
from resourcepool.jobs import Job
from resourcepool.leases.models import AbstractLease
from resourcepool.proxies.models import Proxy
from resourcepool.queues.models import Move, Queue, Server, TaskType
from resourcepool.resources.models import AbstractResource
from resourcepool.resources.pool import Pool
from resourcepool.waiting.models import Ticket

__all__ = [
    "AbstractLease",
    "AbstractResource",
    "Dashboard",
    "Event",
    "Job",
    "Leadership",
    "Move",
    "Pool",
    "Proxy",
    "Queue",
    "Sample",
    "Server",
    "TaskType",
    "Ticket",
]

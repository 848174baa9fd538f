"""Import-only: all models of the app, under the names that users import."""

from resourcepool.db.receipts import Receipt
from resourcepool.history.models import Dashboard, Event, Sample
from resourcepool.jobs import Job
from resourcepool.leases.models import AbstractLease
from resourcepool.locks.channels.models import Subscription
from resourcepool.locks.models import Barrier, ConditionWaiter, RWLockPermit, SemaphorePermit
from resourcepool.proxies.models import Proxy
from resourcepool.queues.models import Move, Queue, QueueGroup, Server
from resourcepool.resources.models import AbstractResource
from resourcepool.resources.pool import Pool
from resourcepool.taskqueue.dispenser.models import Bucket, Dispenser, DispenserTask
from resourcepool.taskqueue.models import Stream, Task
from resourcepool.taskqueue.timers.models import Timer, TimerNode, Topic
from resourcepool.waiting.models import Ticket

__all__ = [
    "AbstractLease",
    "AbstractResource",
    "Barrier",
    "Bucket",
    "ConditionWaiter",
    "Dashboard",
    "Dispenser",
    "DispenserTask",
    "Event",
    "Job",
    "Move",
    "Pool",
    "Proxy",
    "Queue",
    "QueueGroup",
    "RWLockPermit",
    "Receipt",
    "Sample",
    "SemaphorePermit",
    "Server",
    "Stream",
    "Subscription",
    "Task",
    "Ticket",
    "Timer",
    "TimerNode",
    "Topic",
]

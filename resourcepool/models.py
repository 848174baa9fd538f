"""Import-only: which tables exist, and the names that users import."""

from resourcepool.database.receipts import Receipt
from resourcepool.elections.models import Leadership
from resourcepool.history.models import Dashboard, Event, Sample
from resourcepool.jobs import Job
from resourcepool.leases.models import AbstractLease
from resourcepool.locks.channels.models import Broadcast, BroadcastMessage, Subscription
from resourcepool.locks.models import Mutex, Notification, RWLockPermit, SemaphorePermit
from resourcepool.proxies.models import Proxy
from resourcepool.queues.models import Move, Queue, Server, TaskType
from resourcepool.resources.models import AbstractResource
from resourcepool.resources.pool import Pool
from resourcepool.taskqueue.dispenser.models import Bucket, Dispenser, DispenserTask
from resourcepool.taskqueue.models import Stream, Task
from resourcepool.taskqueue.timers.models import Timer, TimerNode, Topic
from resourcepool.waiting.models import Ticket

__all__ = [
    "AbstractLease",
    "AbstractResource",
    "Broadcast",
    "BroadcastMessage",
    "Bucket",
    "Dashboard",
    "Dispenser",
    "DispenserTask",
    "Event",
    "Job",
    "Leadership",
    "Move",
    "Mutex",
    "Notification",
    "Pool",
    "Proxy",
    "Queue",
    "RWLockPermit",
    "Receipt",
    "Sample",
    "SemaphorePermit",
    "Server",
    "Stream",
    "Subscription",
    "Task",
    "TaskType",
    "Ticket",
    "Timer",
    "TimerNode",
    "Topic",
]

"""The admin pages."""

from resourcepool.admin.dashboard_link import DashboardAdmin
from resourcepool.admin.generic import ReadOnlyAdmin
from resourcepool.admin.locks.channels import BroadcastAdmin, BroadcastMessageAdmin, SubscriptionAdmin
from resourcepool.admin.locks.conditions import ConditionAdmin
from resourcepool.admin.locks.names import MutexAdmin, RWLockAdmin, SemaphoreAdmin
from resourcepool.admin.queues.queues import QueueAdmin
from resourcepool.admin.queues.servers import ServerAdmin
from resourcepool.admin.queues.task_types import TaskTypeAdmin
from resourcepool.admin.records import (
    EventAdmin,
    JobAdmin,
    LeadershipAdmin,
    MoveAdmin,
    SampleAdmin,
    TicketAdmin,
)
from resourcepool.admin.resources.proxy import ProxyAdmin
from resourcepool.admin.resources.resource import ResourceAdmin
from resourcepool.admin.taskqueue.dispensers import BucketAdmin, DispenserAdmin, DispenserTaskAdmin
from resourcepool.admin.taskqueue.streams import StreamAdmin, TaskAdmin
from resourcepool.admin.taskqueue.timers import TimerAdmin, TimerNodeAdmin, TopicAdmin

__all__ = [
    "BroadcastAdmin",
    "BroadcastMessageAdmin",
    "BucketAdmin",
    "ConditionAdmin",
    "DashboardAdmin",
    "DispenserAdmin",
    "DispenserTaskAdmin",
    "EventAdmin",
    "JobAdmin",
    "LeadershipAdmin",
    "MoveAdmin",
    "MutexAdmin",
    "ProxyAdmin",
    "QueueAdmin",
    "RWLockAdmin",
    "ReadOnlyAdmin",
    "ResourceAdmin",
    "SampleAdmin",
    "SemaphoreAdmin",
    "ServerAdmin",
    "StreamAdmin",
    "SubscriptionAdmin",
    "TaskAdmin",
    "TaskTypeAdmin",
    "TicketAdmin",
    "TimerAdmin",
    "TimerNodeAdmin",
    "TopicAdmin",
]

"""The admin pages."""

from resourcepool.admin.channels.channels import BroadcastAdmin
from resourcepool.admin.channels.messages import BroadcastMessageAdmin
from resourcepool.admin.channels.subscriptions import SubscriptionAdmin
from resourcepool.admin.dashboard_link import DashboardAdmin
from resourcepool.admin.dispensers.buckets import BucketAdmin
from resourcepool.admin.dispensers.dispensers import DispenserAdmin
from resourcepool.admin.dispensers.tasks import DispenserTaskAdmin
from resourcepool.admin.elections import LeadershipAdmin
from resourcepool.admin.generic import ReadOnlyAdmin
from resourcepool.admin.locks.conditions import ConditionAdmin
from resourcepool.admin.locks.names import MutexAdmin, RWLockAdmin, SemaphoreAdmin
from resourcepool.admin.queues.queues import QueueAdmin
from resourcepool.admin.queues.servers import ServerAdmin
from resourcepool.admin.queues.task_types import TaskTypeAdmin
from resourcepool.admin.records import EventAdmin, JobAdmin, MoveAdmin, SampleAdmin, TicketAdmin
from resourcepool.admin.resources.proxy import ProxyAdmin
from resourcepool.admin.resources.resource import ResourceAdmin
from resourcepool.admin.streams.streams import StreamAdmin
from resourcepool.admin.streams.tasks import TaskAdmin
from resourcepool.admin.timers.nodes import TimerNodeAdmin
from resourcepool.admin.timers.timers import TimerAdmin
from resourcepool.admin.timers.topics import TopicAdmin

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

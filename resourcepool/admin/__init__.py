"""The admin pages."""

from importlib import import_module

from django.contrib import admin

from resourcepool.admin.base import ReadOnlyAdmin
from resourcepool.admin.dashboard_link import DashboardAdmin
from resourcepool.admin.events import EventAdmin
from resourcepool.admin.index import group_index
from resourcepool.admin.locks.channels import ChannelAdmin, MessageAdmin, SubscriptionAdmin
from resourcepool.admin.locks.conditions import BarrierAdmin, ConditionAdmin
from resourcepool.admin.locks.locks import LockAdmin, RWLockAdmin, SemaphoreAdmin
from resourcepool.admin.queues.queue_groups import QueueGroupAdmin
from resourcepool.admin.queues.queues import QueueAdmin
from resourcepool.admin.queues.servers import ServerAdmin
from resourcepool.admin.records import (
    ElectionAdmin,
    JobAdmin,
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
    "BarrierAdmin",
    "BucketAdmin",
    "ChannelAdmin",
    "ConditionAdmin",
    "DashboardAdmin",
    "DispenserAdmin",
    "DispenserTaskAdmin",
    "ElectionAdmin",
    "EventAdmin",
    "JobAdmin",
    "LockAdmin",
    "MessageAdmin",
    "MoveAdmin",
    "ProxyAdmin",
    "QueueAdmin",
    "QueueGroupAdmin",
    "RWLockAdmin",
    "ReadOnlyAdmin",
    "ResourceAdmin",
    "SampleAdmin",
    "SemaphoreAdmin",
    "ServerAdmin",
    "StreamAdmin",
    "SubscriptionAdmin",
    "TaskAdmin",
    "TicketAdmin",
    "TimerAdmin",
    "TimerNodeAdmin",
    "TopicAdmin",
    "group_index",
]

group_index(admin.site)
import_module("resourcepool.admin.systems")  # last: it has a page for what has none

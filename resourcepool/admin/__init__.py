"""The admin pages."""

from resourcepool.admin.dashboard_link import DashboardAdmin
from resourcepool.admin.proxy import ProxyAdmin
from resourcepool.admin.records import EventAdmin, JobAdmin, ReadOnlyAdmin, SampleAdmin, TicketAdmin
from resourcepool.admin.resource import ResourceAdmin

__all__ = [
    "DashboardAdmin",
    "EventAdmin",
    "JobAdmin",
    "ProxyAdmin",
    "ReadOnlyAdmin",
    "ResourceAdmin",
    "SampleAdmin",
    "TicketAdmin",
]

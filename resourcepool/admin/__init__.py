"""The admin pages."""

from django.contrib import admin

from resourcepool.admin import channels, events, locks, records, taskqueue  # noqa: F401 (modules register their pages)
from resourcepool.admin.base import ReadOnlyAdmin
from resourcepool.admin.index import DashboardAdmin, group_index, register_systems
from resourcepool.admin.queues import queue_groups, queues, servers  # noqa: F401
from resourcepool.admin.resources.resource import ProxyAdmin, ResourceAdmin

__all__ = ["DashboardAdmin", "ProxyAdmin", "ReadOnlyAdmin", "ResourceAdmin", "group_index"]

group_index(admin.site)
register_systems(admin.site)

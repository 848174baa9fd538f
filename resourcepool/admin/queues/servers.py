"""Queue servers in the admin: their status, heartbeats and queues."""

from typing import Any

from django.contrib import admin
from django.db.models import Count
from django.http import HttpRequest

from resourcepool.admin.base import ReadOnlyAdmin
from resourcepool.admin.columns import ago_since, badge, column, for_time_since, lines, link_to_list
from resourcepool.admin.queues.filters import QueueGroupFilter
from resourcepool.admin.queues.queue_groups import PerQueueGroupAdminMixin
from resourcepool.labels import format_labels
from resourcepool.operations.operation import by_name
from resourcepool.operations.queues import DRAIN, UNDRAIN
from resourcepool.queues.models import Queue, Server
from resourcepool.status.queues.system import server_badge
from resourcepool.status.times import exact_duration, precise_duration
from resourcepool.translation import gettext, gettext_lazy as _

LABELS = column("labels", _("labels"), format_labels, name="offered")
REGISTERED = column("micros_registered", _("registered"), ago_since, name="registered")


@admin.register(Server)
class ServerAdmin(ReadOnlyAdmin, PerQueueGroupAdminMixin):
    """One row for each run of a process; it is removed when the process has left or was presumed dead."""

    list_display = (
        *("named", "queue_group", "status_badge", "heartbeat", "queues", "weight", "limit"),
        *(LABELS, REGISTERED, "holder"),
    )
    fields = (
        *("queue_group", "name", "holder", "status_badge", "heartbeat"),
        column("ttl", _("presumed dead after"), spell=exact_duration),
        *("weight", "limit", LABELS, "queues", REGISTERED),
        column("micros_idle", _("no queue for"), for_time_since, name="idle"),
        column("micros_last_activity", _("last asked for work"), ago_since, name="last_activity"),
        *("in_hand", "fence"),
    )
    list_filter = (QueueGroupFilter, "state")
    list_select_related = ("queue_group",)
    search_fields = ("name", "holder")
    actions = ()
    operations = by_name(DRAIN, UNDRAIN)

    def get_queryset(self, request: HttpRequest) -> Any:
        rows: Any = super().get_queryset(request)
        return rows.with_ages()

    def load_column_values(self, rows: Any) -> None:
        """Set ``owned_count`` and ``requested_count`` of each server: how many queues it has, and has requested."""
        pks, queue_groups = {server.pk for server in rows}, {server.queue_group_id for server in rows}
        queues = Queue.objects.filter(queue_group__in=queue_groups).order_by()
        owned = queues.filter(cur_server__in=pks).values_list("cur_server").annotate(Count("pk"))
        requests = queues.filter(requested_at__isnull=False, req_server__in=pks)
        requested = requests.values_list("req_server").annotate(Count("pk"))
        counts = dict(owned), dict(requested)
        for server in rows:
            server.owned_count, server.requested_count = (count.get(server.pk, 0) for count in counts)

    @admin.display(description=_("server"))
    def named(self, server: Any) -> str:
        return str(server)

    @admin.display(description=_("state"))
    def status_badge(self, server: Any) -> str:
        micros = server.micros_last_activity
        state = server_badge(
            server.queue_group,
            is_alive=server.micros_left > 0,
            is_draining=server.state == Server.State.DRAINING,
            heartbeat=_since_heartbeat(server),
            queues=server.owned_count,
            last_activity=None if micros is None else -micros / 1_000_000,
            in_hand=server.in_hand,
        )
        return badge(state)

    @admin.display(description=_("heartbeat"))
    def heartbeat(self, server: Any) -> str:
        left = server.micros_left / 1_000_000
        last = gettext("%s ago") % precise_duration(_since_heartbeat(server))
        return lines(last, gettext("presumed dead in %s") % precise_duration(left) if left > 0 else "")

    @admin.display(description=_("queues"))
    def queues(self, server: Any) -> str:
        owned = link_to_list(self.admin_site, Queue, server.owned_count, server=server.pk)
        requested = server.requested_count
        return lines(owned, gettext("%d requested") % requested if requested else "")


def _since_heartbeat(server: Any) -> float:
    """Return the seconds since its last heartbeat."""
    seconds: float = server.ttl - server.micros_left / 1_000_000
    return max(0.0, seconds)

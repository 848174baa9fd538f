"""Servers in the admin: who works, who is late, who has what."""

from typing import Any

from django.contrib import admin
from django.db.models import Count
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.columns import ago, badge, column, lasted, lasting, lines, to_list
from resourcepool.admin.generic import ReadOnlyAdmin
from resourcepool.admin.queues.filters import TaskTypeFilter
from resourcepool.admin.queues.operating import ByTaskType
from resourcepool.labels import spelled
from resourcepool.operations.operation import by_name
from resourcepool.operations.queues import DRAIN, UNDRAIN
from resourcepool.queues.models import Queue, Server
from resourcepool.status.queues.alarms import is_stalled
from resourcepool.status.reading import exactly

LABELS = column("labels", _("labels"), spelled, name="offered")
REGISTERED = column("micros_registered", _("registered"), ago, name="registered")


@admin.register(Server)
class ServerAdmin(ReadOnlyAdmin, ByTaskType):
    """One row for each run of a process; it goes when the process has left, or was found dead."""

    list_display = (
        *("named", "task_type", "standing", "heartbeat", "queues", "weight", "limit"),
        *(LABELS, REGISTERED, "holder"),
    )
    fields = (
        *("task_type", "name", "holder", "standing", "heartbeat"),
        column("ttl", _("judged dead after"), spell=exactly),
        *("weight", "limit", LABELS, "queues", REGISTERED),
        column("micros_idle", _("without a queue"), lasting, name="idle"),
        column("micros_stirred", _("asked for work"), ago, name="worked"),
        *("in_hand", "fence"),
    )
    list_filter = (TaskTypeFilter, "state")
    list_select_related = ("task_type",)
    search_fields = ("name", "holder")
    actions = ()
    operations = by_name(DRAIN, UNDRAIN)

    def get_queryset(self, request: HttpRequest) -> Any:
        rows: Any = super().get_queryset(request)
        return rows.with_ages()

    def note(self, rows: Any) -> None:
        """Set ``had`` and ``asked`` on each server: how many queues it has, and has asked for."""
        pks, task_types = {one.pk for one in rows}, {one.task_type_id for one in rows}
        queues = Queue.objects.filter(task_type__in=task_types).order_by()
        had = queues.filter(cur_server__in=pks).values_list("cur_server").annotate(Count("pk"))
        wanted = queues.filter(requested_at__isnull=False, req_server__in=pks)
        asked = wanted.values_list("req_server").annotate(Count("pk"))
        counts = dict(had), dict(asked)
        for one in rows:
            one.had, one.asked = (count.get(one.pk, 0) for count in counts)

    @admin.display(description=_("server"))
    def named(self, server: Any) -> str:
        return str(server)

    @admin.display(description=_("state"))
    def standing(self, server: Any) -> str:
        if server.micros_left <= 0:
            return badge("quarantined", gettext("judged dead"))
        stirred = None if server.micros_stirred is None else -server.micros_stirred / 1_000_000
        if is_stalled(server.task_type, server.had, stirred, server.in_hand):
            return badge("quarantined", gettext("hangs"))
        css = "draining" if server.state == Server.State.DRAINING else "free"
        return badge(css, server.get_state_display())

    @admin.display(description=_("heartbeat"))
    def heartbeat(self, server: Any) -> str:
        left = server.micros_left / 1_000_000
        heard = gettext("%s ago") % lasted(max(0.0, server.ttl - left))
        return lines(heard, gettext("dead in %s") % lasted(left) if left > 0 else "")

    @admin.display(description=_("queues"))
    def queues(self, server: Any) -> str:
        had = to_list(self.admin_site, Queue, server.had, server=server.pk)
        return lines(had, gettext("%d asked for") % server.asked if server.asked else "")

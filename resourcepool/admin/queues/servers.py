"""Servers in the admin: who works, who is late, who has what."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.generic import ReadOnlyAdmin
from resourcepool.admin.queues.asking import Asking
from resourcepool.admin.queues.filters import TaskTypeFilter
from resourcepool.admin.queues.links import to_list
from resourcepool.admin.resources.columns import lines
from resourcepool.admin.words import column, lasted
from resourcepool.labels import spelled
from resourcepool.operations.operation import by_name
from resourcepool.operations.queues import DRAIN, UNDRAIN
from resourcepool.queues.models import Queue, Server
from resourcepool.status.durations import duration, exactly


@admin.register(Server)
class ServerAdmin(ReadOnlyAdmin, Asking):
    """One row for each run of a process; it goes when the process has left, or was found dead."""

    list_display = (
        *("named", "task_type", "standing", "heartbeat", "queues", "weight", "limit", "offered"),
        *("registered", "holder"),
    )
    fields = (
        *("task_type", "name", "holder", "standing", "heartbeat"),
        column("ttl", _("judged dead after"), spell=exactly),
        *("weight", "limit", "offered"),
        *("queues", "registered", "idle", "worked", "in_hand", "fence"),
    )
    list_filter = (TaskTypeFilter, "state")
    list_select_related = ("task_type",)
    search_fields = ("name", "holder")
    actions = ()
    operations = by_name(DRAIN, UNDRAIN)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the servers with their ages, by the database's clock."""
        rows: Any = super().get_queryset(request)
        found: QuerySet[Any] = rows.with_ages()
        return found

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the server, with how many queues it has; None if there is none."""
        found = super().get_object(request, object_id, from_field)
        if found is not None:
            self.note([found])
        return found

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
        """Show its name, and the number of this run."""
        return str(server)

    @admin.display(description=_("state"))
    def standing(self, server: Any) -> str:
        """Show whether it lives, drains, or was judged dead."""
        if server.micros_left <= 0:
            css, text = "quarantined", gettext("judged dead")
        elif server.state == Server.State.DRAINING:
            css, text = "draining", server.get_state_display()
        else:
            css, text = "free", server.get_state_display()
        return format_html('<span class="resourcepool-state {}">{}</span>', css, text)

    @admin.display(description=_("heartbeat"))
    def heartbeat(self, server: Any) -> str:
        """Show how long ago it was heard of, and when it is judged dead."""
        left = server.micros_left / 1_000_000
        ago = gettext("%s ago") % lasted(max(0.0, server.ttl - left))
        return lines(ago, gettext("dead in %s") % lasted(left) if left > 0 else "")

    @admin.display(description=_("queues"))
    def queues(self, server: Any) -> str:
        """Show how many it has, with a link to them, and how many it has asked for."""
        had = to_list(self.admin_site, Queue, server.had, server=server.pk)
        return lines(had, gettext("%d asked for") % server.asked if server.asked else "")

    @admin.display(description=_("labels"))
    def offered(self, server: Any) -> str:
        """Show what it is or has."""
        return spelled(server.labels)

    @admin.display(description=_("registered"))
    def registered(self, server: Any) -> str:
        """Show how long ago."""
        return gettext("%s ago") % duration(max(0.0, -server.micros_registered / 1_000_000))

    @admin.display(description=_("asked for work"))
    def worked(self, server: Any) -> str:
        """Show how long ago somebody in it has begun work, or asked for some."""
        if server.micros_stirred is None:
            return ""
        return gettext("%s ago") % duration(max(0.0, -server.micros_stirred / 1_000_000))

    @admin.display(description=_("without a queue"))
    def idle(self, server: Any) -> str:
        """Show since when it has had no queue."""
        if server.micros_idle is None:
            return ""
        return gettext("for %s") % duration(max(0.0, -server.micros_idle / 1_000_000))

"""Nodes in the admin: the processes that handle timers."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.generic import ReadOnlyAdmin
from resourcepool.dialect import MicrosUntil
from resourcepool.labels import listed, spelled
from resourcepool.taskqueue.timers.models import TimerNode


@admin.register(TimerNode)
class TimerNodeAdmin(ReadOnlyAdmin):
    """One row for each running process; it goes when the process ends, or is found dead."""

    list_display = ("name", "standing", "version", "offered", "handles")
    fields = (*list_display, "holder", "fence")
    search_fields = ("name",)
    ordering = ("name",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the nodes, each with what is left of its lease, by the database's clock."""
        rows: QuerySet[Any] = super().get_queryset(request).annotate(db_left=MicrosUntil("busy_before"))
        return rows

    @admin.display(description=_("standing"))
    def standing(self, node: Any) -> str:
        """Show whether it is alive."""
        css, text = ("free", gettext("alive")) if node.db_left > 0 else ("quarantined", gettext("dead"))
        return format_html('<span class="resourcepool-state {}">{}</span>', css, text)

    @admin.display(description=_("labels"))
    def offered(self, node: Any) -> str:
        """Show its labels."""
        return spelled(node.labels)

    @admin.display(description=_("topics"))
    def handles(self, node: Any) -> str:
        """Show for which topics it has a handler."""
        return listed(node.topics)

"""Dispensers in the admin: their settings, what waits, who has what, and why nothing is handed out."""

from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.queues.links import to_list
from resourcepool.admin.resources.columns import lines
from resourcepool.admin.streams.places import PlaceAdmin
from resourcepool.operations.operation import by_name
from resourcepool.operations.work import PAUSE, RESUME
from resourcepool.status.dispensers import DispenserStatus, dispensers
from resourcepool.status.durations import duration
from resourcepool.taskqueue.dispenser.models import Bucket, Dispenser, DispenserTask
from resourcepool.templatetags.resourcepool_dashboard import commands

SETTINGS = ("most_expirations", "done_kept")
STANDING = ("standing", "ready", "assigned", "finished", "rebuilt")
State = DispenserTask.State


@admin.register(Dispenser)
class DispenserAdmin(PlaceAdmin):
    """Settings are edited; buckets and tasks have lists of their own."""

    list_display = ("name", *STANDING)
    search_fields = ("name",)
    ordering = ("name",)
    fields: ClassVar[Any] = ("name", *SETTINGS, *STANDING)
    readonly_fields: ClassVar[Any] = ("name", *STANDING)
    operations = by_name(PAUSE, RESUME)
    settings, work = SETTINGS, DispenserTask
    read = staticmethod(dispensers)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Tell that nobody may: programs make it when they first use it."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether this user may delete it; one with tasks nobody may, and Django would read all of them."""
        if obj is None or not super().has_delete_permission(request, obj):
            return False
        return not (obj.tasks.exists() or obj.buckets.exists())

    @admin.display(description=_("standing"))
    def standing(self, row: Any) -> str:
        """Show whether it hands out tasks, and if not, why."""
        status: DispenserStatus = self.status_of(row)
        css, text = "draining", gettext("nothing to do")
        if status.is_paused:
            text = gettext("paused")
        elif status.depth:
            css, text = ("free", gettext("at work")) if status.live else ("cooling", gettext("no worker"))
        elif status.assigned:
            css, text = "leased", gettext("all assigned")
        elif status.failed:
            css, text = "quarantined", gettext("only failed tasks")
        state = format_html('<span class="resourcepool-state {}">{}</span>', css, text)
        return lines(state, commands(status.because))

    @admin.display(description=_("ready"))
    def ready(self, row: Any) -> str:
        """Show how many tasks are in the pool, with a link to them, and how old the oldest is."""
        status: DispenserStatus = self.status_of(row)
        link = to_list(self.admin_site, DispenserTask, status.depth, dispenser=row.name, state=State.READY)
        oldest = "" if status.oldest is None else gettext("the oldest is %s old") % duration(status.oldest)
        return lines(link, oldest)

    @admin.display(description=_("assigned"))
    def assigned(self, row: Any) -> str:
        """Show how many tasks workers have, and in how many buckets."""
        status: DispenserStatus = self.status_of(row)
        link = to_list(
            self.admin_site, DispenserTask, status.assigned, dispenser=row.name, state=State.ASSIGNED
        )
        buckets = ngettext("%d live bucket", "%d live buckets", status.live) % status.live
        expired = ngettext("%d expired bucket", "%d expired buckets", status.expired) % status.expired
        return lines(
            link,
            to_list(self.admin_site, Bucket, buckets, dispenser=row.name, standing="live"),
            to_list(self.admin_site, Bucket, expired, dispenser=row.name, standing="expired")
            if status.expired
            else "",
        )

    @admin.display(description=_("finished"))
    def finished(self, row: Any) -> str:
        """Show what the last minute brought, and what waits for an operator."""
        status: DispenserStatus = self.status_of(row)
        failed = to_list(self.admin_site, DispenserTask, status.failed, dispenser=row.name, state=State.FAILED)
        waiting = format_html("{} {}", failed, gettext("failed")) if status.failed else ""
        return lines(gettext("%d done in the last minute") % status.done, waiting)

    @admin.display(description=_("last rebuild"))
    def rebuilt(self, row: Any) -> str:
        """Show when the pool was rebuilt last."""
        since = self.status_of(row).rebuilt
        return gettext("never") if since is None else gettext("%s ago") % duration(since)

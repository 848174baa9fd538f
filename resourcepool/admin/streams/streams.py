"""Streams in the admin: their settings, who leads, and why nothing runs."""

from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.filters import choice
from resourcepool.admin.queues.links import to_list
from resourcepool.admin.resources.columns import lines
from resourcepool.admin.streams.places import PlaceAdmin
from resourcepool.operations.operation import by_name
from resourcepool.operations.work import PAUSE, RESUME
from resourcepool.status.durations import duration
from resourcepool.status.streams import STREAMS, StreamStatus, streams
from resourcepool.taskqueue.models import Stream, Task
from resourcepool.templatetags.resourcepool_dashboard import commands

SETTINGS = (
    *("on_failure", "retries", "retry_delay", "most_deaths", "lanes"),
    *("term_ttl", "lock_delay", "done_kept", "is_paused"),
)
STANDING = ("standing", "led_by", "unfinished", "finished")


StreamStandingFilter = choice(
    "standing",
    _("standing"),
    lambda: [
        ("no-consumer", _("tasks, but no consumer")),
        ("blocked", _("blocked")),
        ("paused", _("paused")),
        ("busy", _("with unfinished tasks")),
    ],
    lambda rows, standing: STREAMS.standings[standing](rows) if standing in STREAMS.standings else rows,
)


@admin.register(Stream)
class StreamAdmin(PlaceAdmin):
    """Settings are edited; tasks have a list of their own."""

    list_display = ("name", *STANDING)
    search_fields = ("name",)
    ordering = ("name",)
    list_filter = (StreamStandingFilter,)
    show_facets = admin.ShowFacets.NEVER
    fields: ClassVar[Any] = ("name", *SETTINGS)
    operations = by_name(PAUSE, RESUME)
    settings, work = SETTINGS, Task
    read = staticmethod(streams)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return those that no form changes; programs know it by its name."""
        return () if obj is None else ("name", *STANDING)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return what the page shows."""
        return self.fields if obj is None else (*self.fields, *STANDING)

    @admin.display(description=_("standing"))
    def standing(self, row: Any) -> str:
        """Show whether it runs, and if not, why."""
        status: StreamStatus = self.status_of(row)
        css, text = "free", gettext("at work")
        if row.is_paused:
            css, text = "draining", gettext("paused")
        elif status.because:
            css, text = "quarantined", gettext("not running")
        elif status.first is None:
            css, text = "draining", gettext("nothing to do")
        state = format_html('<span class="resourcepool-state {}">{}</span>', css, text)
        return lines(state, commands(status.because))

    @admin.display(description=_("leader"))
    def led_by(self, row: Any) -> str:
        """Show who runs its tasks, since when, and who stands by."""
        status: StreamStatus = self.status_of(row)
        since = "" if status.since is None else gettext("for %s") % duration(status.since)
        standbys = (
            ngettext("%d standby", "%d standbys", status.standbys) % status.standbys if status.standbys else ""
        )
        return lines(status.leader or gettext("no leader"), since, standbys)

    @admin.display(description=_("unfinished"))
    def unfinished(self, row: Any) -> str:
        """Show how many tasks are left, with a link to them, and how old the first one is."""
        status: StreamStatus = self.status_of(row)
        link = to_list(self.admin_site, Task, status.depth, stream=row.name, standing="unfinished")
        return lines(link, gettext("the first is %s old") % duration(status.first.age) if status.first else "")

    @admin.display(description=_("finished"))
    def finished(self, row: Any) -> str:
        """Show what the last minute brought, and what waits for an operator."""
        status: StreamStatus = self.status_of(row)
        told = gettext("%(done)d done, %(failed)d failed in the last minute")
        dead = to_list(self.admin_site, Task, status.dead, stream=row.name, standing=Task.State.DEAD)
        waiting = format_html("{} {}", dead, gettext("dead-letter")) if status.dead else ""
        return lines(told % {"done": status.done, "failed": status.failed}, waiting)

"""Topics of timers in the admin: their settings, what is due, and why nothing fires."""

from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.generic import ModelForm
from resourcepool.admin.queues.links import to_list
from resourcepool.admin.resources.columns import lines
from resourcepool.admin.streams.places import PlaceAdmin
from resourcepool.operations.operation import by_name
from resourcepool.operations.work import PAUSE, RESUME
from resourcepool.status.durations import duration
from resourcepool.status.timers import TopicStatus, topics
from resourcepool.taskqueue.timers.models import Timer, Topic
from resourcepool.templatetags.resourcepool_dashboard import commands

SETTINGS = (
    *("requires", "on_canary", "least_version", "ttl"),
    *("retries", "retry_delay", "most_deaths", "done_kept", "is_paused"),
)
STANDING = ("standing", "waiting", "handled_by", "finished")


class TopicForm(ModelForm):
    """Its settings; no label at all is required where that is left empty."""

    def clean_requires(self) -> Any:
        """Return the labels."""
        return self.cleaned_data["requires"] or {}


@admin.register(Topic)
class TopicAdmin(PlaceAdmin):
    """Settings are edited; the first timer makes a topic, and timers have a list of their own."""

    form = TopicForm
    list_display = ("name", *STANDING)
    search_fields = ("name",)
    ordering = ("name",)
    fields: ClassVar[Any] = ("name", *SETTINGS, *STANDING)
    readonly_fields = ("name", *STANDING)
    operations = by_name(PAUSE, RESUME)
    settings, work = SETTINGS, Timer
    read = staticmethod(topics)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Tell that nobody may."""
        return False

    @admin.display(description=_("standing"))
    def standing(self, row: Any) -> str:
        """Show whether its timers fire, and if not, why."""
        status: TopicStatus = self.status_of(row)
        css, text = "free", gettext("at work")
        if row.is_paused:
            css, text = "draining", gettext("paused")
        elif status.because:
            css, text = "quarantined", gettext("not firing")
        elif status.first is None and not status.running:
            css, text = "draining", gettext("nothing to do")
        return lines(
            format_html('<span class="resourcepool-state {}">{}</span>', css, text), commands(status.because)
        )

    @admin.display(description=_("pending"))
    def waiting(self, row: Any) -> str:
        """Show how many wait, with a link to them, and how late the first one is, or when it is due."""
        status: TopicStatus = self.status_of(row)
        link = to_list(self.admin_site, Timer, f"{status.pending:,}", topic=row.name, standing="unfinished")
        when = ""
        if status.due:
            told = {"count": status.due, "late": duration(status.late)}
            when = gettext("%(count)d due, the first for %(late)s") % told
        elif status.next_in is not None:
            when = gettext("the next one in %s") % duration(status.next_in)
        return lines(link, when)

    @admin.display(description=_("nodes"))
    def handled_by(self, row: Any) -> str:
        """Show how many live nodes may handle them, and how many run."""
        status: TopicStatus = self.status_of(row)
        count = len(status.nodes)
        nodes = ngettext("%d node", "%d nodes", count) % count if count else gettext("no node")
        return lines(nodes, gettext("%d running") % status.running if status.running else "")

    @admin.display(description=_("finished"))
    def finished(self, row: Any) -> str:
        """Show what the last minute brought, and what waits for an operator."""
        status: TopicStatus = self.status_of(row)
        told = gettext("%(done)d done, %(failed)d failed in the last minute")
        dead = to_list(self.admin_site, Timer, status.dead, topic=row.name, standing=Timer.State.DEAD.value)
        waiting = format_html("{} {}", dead, gettext("dead-letter")) if status.dead else ""
        return lines(told % {"done": status.done, "failed": status.failed}, waiting)

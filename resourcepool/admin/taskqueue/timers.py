"""Topics of timers in the admin, their timers, and the nodes that handle these."""

from typing import Any

from django.contrib import admin
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.columns import badge, column, lines
from resourcepool.admin.filters import choice, typed
from resourcepool.admin.generic import ModelForm, ReadOnlyAdmin
from resourcepool.admin.places import PlaceAdmin, WorkAdmin
from resourcepool.dialect import NullInOrder
from resourcepool.labels import listed, spelled
from resourcepool.operations.operation import by_name
from resourcepool.operations.work import CANCEL, FIRE
from resourcepool.status.reading import duration
from resourcepool.status.work.schedules import recurrence
from resourcepool.status.work.timers import TopicStatus, topics
from resourcepool.taskqueue.timers.models import LATE, Timer, TimerNode, Topic

OF_ROWS = ("unfinished", "due", "late", "handed")  # filters of the rows, beside the states
TimerStandingFilter = choice(
    "standing",
    _("state"),
    lambda: [
        ("unfinished", _("unfinished")),
        ("due", _("due")),
        ("late", _("late by a minute")),
        ("handed", _("handed over, not taken yet")),
        *Timer.State.choices,
    ],
    lambda timers, state: getattr(timers, state)() if state in OF_ROWS else timers.filter(state=state),
)
SCHEDULE = column("schedule", _("schedule"), recurrence)


class TopicForm(ModelForm):
    """Its settings; no label at all is required where that is left empty."""

    def clean_requires(self) -> Any:
        return self.cleaned_data["requires"] or {}


@admin.register(Topic)
class TopicAdmin(PlaceAdmin):
    form = TopicForm
    settings = (
        *("requires", "on_canary", "least_version", "ttl"),
        *("retries", "retry_delay", "most_deaths", "done_kept", "is_paused"),
    )
    figures = ("standing", "waiting", "handled_by", "finished")
    work, place, read = Timer, "topic", staticmethod(topics)

    def state_of(self, row: Any, status: TopicStatus) -> tuple[str, str]:
        if row.is_paused:
            return "draining", gettext("paused")
        if status.because:
            return "quarantined", gettext("not firing")
        if status.late > LATE:
            return "quarantined", gettext("late")
        if status.first is None and not status.running:
            return "draining", gettext("nothing to do")
        return "free", gettext("at work")

    @admin.display(description=_("pending"))
    def waiting(self, row: Any) -> str:
        status: TopicStatus = row.status
        link = self.to_work(row.name, f"{status.pending:,}", standing="unfinished")
        when = ""
        if status.due:
            told = {"count": status.due, "late": duration(status.late)}
            when = gettext("%(count)d due, the first for %(late)s") % told
        elif status.next_in is not None:
            when = gettext("the next one in %s") % duration(status.next_in)
        return lines(link, when)

    @admin.display(description=_("nodes"))
    def handled_by(self, row: Any) -> str:
        count, running = len(row.status.nodes), row.status.running
        nodes = ngettext("%d node", "%d nodes", count) % count if count else gettext("no node")
        return lines(nodes, gettext("%d running") % running if running else "")


@admin.register(Timer)
class TimerAdmin(WorkAdmin):
    list_display = ("name", "topic", "colored", "due_at", "when", SCHEDULE, "attempts", "outcome")
    fields = (
        *("topic", "name", "payload", "colored", "due_at", "when", SCHEDULE, "catch_up", "outcome"),
        *("attempts", "failures", "deaths", "previous_end"),
        *("scheduled_at", "started_at", "finished_at", "holder", "fence"),
    )
    list_filter = (typed("topic", _("topic")), TimerStandingFilter)
    search_fields = ("name",)
    search_help_text = _("The whole name of a timer.")
    operations = by_name(FIRE, CANCEL) | WorkAdmin.operations
    in_turn = dict.fromkeys(OF_ROWS, (NullInOrder("finished_at"), "busy_before", "pk"))
    ages = {"micros_left": "busy_before"}

    @admin.display(description=_("state"))
    def colored(self, row: Any) -> str:
        if row.finished_at is None and row.micros_left < -LATE * 1_000_000:
            return badge("quarantined", row.get_state_display())
        return super().colored(row)

    @admin.display(description=_("when"))
    def when(self, timer: Any) -> str:
        if timer.finished_at is not None:
            return ""
        left = timer.micros_left / 1_000_000
        if timer.state != Timer.State.PENDING:
            return "" if left > 0 else gettext("its handler's process has died; it fires again")
        if left <= 0:
            return gettext("due for %s") % duration(-left)
        return gettext("handed over, not taken yet") if timer.holder else gettext("in %s") % duration(left)


@admin.register(TimerNode)
class TimerNodeAdmin(ReadOnlyAdmin):
    """One row for each running process; it goes when the process ends, or is found dead."""

    list_display = (
        *("name", "standing", "version", column("labels", _("labels"), spelled, name="offered")),
        column("topics", _("topics"), listed, name="handles"),
    )
    fields = (*list_display, "holder", "fence")
    search_fields = ("name",)
    ordering = ("name",)
    ages = {"micros_left": "busy_before"}

    @admin.display(description=_("standing"))
    def standing(self, node: Any) -> str:
        css, text = ("free", gettext("alive")) if node.micros_left > 0 else ("quarantined", gettext("dead"))
        return badge(css, text)

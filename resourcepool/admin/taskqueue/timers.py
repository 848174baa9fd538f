"""Topics of timers in the admin, their timers, and the nodes that handle these."""

from typing import Any

from django.contrib import admin

from resourcepool.admin.base import ModelForm, ReadOnlyAdmin
from resourcepool.admin.columns import badge, column
from resourcepool.admin.containers import ContainerAdmin, WorkAdmin
from resourcepool.admin.filters import choice_filter, text_filter
from resourcepool.db.dialect import NullInOrder
from resourcepool.labels import format_labels, join_names
from resourcepool.operations.operation import by_name
from resourcepool.operations.taskqueue import CANCEL, FIRE
from resourcepool.status.badge import ALIVE, NO_CONTACT, work_badge
from resourcepool.status.times import duration
from resourcepool.status.work.pages import recurrence
from resourcepool.status.work.timers import SYSTEM
from resourcepool.taskqueue.timers.models import LATE_AFTER, Timer, TimerNode, Topic
from resourcepool.translation import gettext, gettext_lazy as _

OF_ROWS = ("unfinished", "due", "late", "handed")  # queryset filters, in addition to the states
TimerStatusFilter = choice_filter(
    "status",
    _("state"),
    lambda: [
        ("unfinished", _("unfinished")),
        ("due", _("due")),
        ("late", _("late by more than a minute")),
        ("handed", _("handed over, not yet claimed")),
        *Timer.State.choices,
    ],
    lambda timers, state: getattr(timers, state)() if state in OF_ROWS else timers.filter(state=state),
)
SCHEDULE = column("schedule", _("schedule"), recurrence)


class TopicForm(ModelForm):
    """The settings of a topic; an empty field of labels requires none."""

    def clean_requires(self) -> Any:
        return self.cleaned_data["requires"] or {}


@admin.register(Topic)
class TopicAdmin(ContainerAdmin):
    form = TopicForm
    settings = (
        *("requires", "on_canary", "least_version", "ttl"),
        *("retries", "retry_delay", "max_crashes", "done_kept", "is_paused"),
    )
    work_title = _("Next timers")
    system = SYSTEM

    def first_work(self, row: Any, work: Any) -> Any:
        return work.unfinished().order_by(NullInOrder("finished_at"), "busy_before", "pk")


@admin.register(Timer)
class TimerAdmin(WorkAdmin):
    list_display = ("name", "topic", "status_badge", "due_at", "when", SCHEDULE, "attempts", "outcome")
    fields = (
        *("topic", "name", "payload", "status_badge", "due_at", "when", SCHEDULE, "catch_up", "outcome"),
        *("attempts", "failures", "crashes", "previous_end"),
        *("scheduled_at", "started_at", "finished_at", "holder", "fence"),
    )
    list_filter = (text_filter("topic", _("topic")), TimerStatusFilter)
    search_fields = ("name",)
    search_help_text = _("The full name of a timer.")
    operations = by_name(FIRE, CANCEL) | WorkAdmin.operations
    filtered_ordering = dict.fromkeys(OF_ROWS, (NullInOrder("finished_at"), "busy_before", "pk"))
    time_annotations = {"micros_left": "busy_before"}

    @admin.display(description=_("state"))
    def status_badge(self, row: Any) -> str:
        is_late = row.finished_at is None and row.micros_left < -LATE_AFTER * 1_000_000
        return badge(work_badge(row, late=is_late))

    @admin.display(description=_("when"))
    def when(self, timer: Any) -> str:
        if timer.finished_at is not None:
            return ""
        left = timer.micros_left / 1_000_000
        if timer.state != Timer.State.PENDING:
            return "" if left > 0 else gettext("its handler's process crashed; it will fire again")
        if left <= 0:
            return gettext("due for %s") % duration(-left)
        return gettext("handed over, not yet claimed") if timer.holder else gettext("in %s") % duration(left)


@admin.register(TimerNode)
class TimerNodeAdmin(ReadOnlyAdmin):
    """One row per running process, removed when the process ends or has lost contact."""

    list_display = (
        *("name", "status_badge", "version", column("labels", _("labels"), format_labels, name="offered")),
        column("topics", _("topics"), join_names, name="handles"),
    )
    fields = (*list_display, "holder", "fence")
    search_fields = ("name",)
    ordering = ("name",)
    time_annotations = {"micros_left": "busy_before"}

    @admin.display(description=_("status"))
    def status_badge(self, node: Any) -> str:
        return badge(ALIVE if node.micros_left > 0 else NO_CONTACT)

"""Streams, dispensers and topics in the admin, with their tasks and timers, buckets and nodes."""

from typing import Any

from django.contrib import admin
from django.db import connections
from django.http import HttpRequest
from django.utils.html import format_html

from resourcepool.admin.base import ExactSearchMixin, ModelForm, ReadOnlyAdmin
from resourcepool.admin.columns import column, countdown, link_to_list
from resourcepool.admin.containers import ContainerAdmin, WorkAdmin
from resourcepool.admin.filters import choice_filter, text_filter
from resourcepool.admin.operations_mixin import OperationsAdminMixin
from resourcepool.db.dialect import DbNow, NullInOrder
from resourcepool.db.rows import count_groups
from resourcepool.operations.operation import by_name
from resourcepool.operations.taskqueue import CANCEL, FIRE, REVOKE
from resourcepool.status.badge import ALIVE, EXPIRED, LIVE, NO_CONTACT, work_badge
from resourcepool.status.times import duration
from resourcepool.status.work.dispensers import MAX_COUNTED, SYSTEM as DISPENSER_SYSTEM
from resourcepool.status.work.pages import recurrence
from resourcepool.status.work.streams import STREAMS, SYSTEM as STREAM_SYSTEM, StreamStatus
from resourcepool.status.work.timers import SYSTEM as TOPIC_SYSTEM
from resourcepool.taskqueue.dispenser.models import Bucket, Dispenser, DispenserTask
from resourcepool.taskqueue.models import Stream, Task
from resourcepool.taskqueue.timers.models import LATE_AFTER, Timer, TimerNode, Topic
from resourcepool.text import format_labels, join_names
from resourcepool.translation import gettext, gettext_lazy as _

OF_ROWS = ("unfinished", "due", "late", "handed")  # queryset filters, in addition to the states
StreamStatusFilter = choice_filter(
    "status",
    _("status"),
    lambda: [
        ("no-consumer", _("tasks, but no consumer")),
        ("blocked", _("blocked")),
        ("paused", _("paused")),
        ("busy", _("with unfinished tasks")),
    ],
    lambda rows, status: STREAMS.filters[status](rows) if status in STREAMS.filters else rows,
)
TaskStatusFilter = choice_filter(
    "status",
    _("state"),
    lambda: [("unfinished", _("unfinished")), *Task.State.choices],
    lambda tasks, state: tasks.unfinished() if state == "unfinished" else tasks.filter(state=state),
)


@admin.register(Stream)
class StreamAdmin(ContainerAdmin):
    can_be_added = True
    list_filter = (StreamStatusFilter,)
    show_facets = admin.ShowFacets.NEVER
    settings = (
        *("on_failure", "retries", "retry_delay", "max_crashes", "lanes"),
        *("term_ttl", "lock_delay", "done_kept", "is_paused"),
    )
    system = STREAM_SYSTEM
    work_title = _("First unfinished tasks")

    def first_work(self, row: Any, work: Any) -> Any:
        """Return the unfinished tasks, the oldest first; those that block lanes before all others."""
        status: StreamStatus = row.status
        blocked = work.filter(state=Task.State.BLOCKED)
        tasks = blocked if status.blocked and not status.is_blocked else work
        return tasks.unfinished_in_order()


@admin.register(Task)
class TaskAdmin(WorkAdmin):
    list_display = ("key", "stream", "type", "status_badge", "attempts", "outcome", "submitted_at")
    fields = (
        *("stream", "key", "type", "lane", "params", "status_badge", "outcome"),
        *("attempts", "failures", "crashes", "task_time", "submitted_at", "started_at", "finished_at"),
        *("holder", "term", "fence"),
    )
    list_filter = (text_filter("stream", _("stream")), TaskStatusFilter)
    search_fields = ("key",)
    search_help_text = _("The full key of a task.")
    filtered_ordering = dict.fromkeys(
        ("unfinished", "blocked"), (NullInOrder("finished_at"), "task_time", "pk")
    )


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
    system = TOPIC_SYSTEM

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
        return work_badge(row, late=is_late).html

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
        return (ALIVE if node.micros_left > 0 else NO_CONTACT).html


DispenserState = DispenserTask.State


def _in_buckets_named(tasks: Any, text: str) -> Any:
    return tasks.filter(bucket_id__in=Bucket.objects.using(tasks.db).filter(name=text).values("pk"))


DispenserFilter = text_filter("dispenser", _("dispenser"))
BucketStatusFilter = choice_filter(
    "status",
    _("state"),
    [("live", _("live")), ("expired", _("expired"))],
    lambda rows, which: rows.filter(**{f"busy_before__{'gt' if which == 'live' else 'lte'}": DbNow()}),
)


@admin.register(Dispenser)
class DispenserAdmin(ContainerAdmin):
    """Dispensers, which only their buttons pause and resume."""

    settings = ("most_expirations", "done_kept")
    work_title = _("First tasks: the failed ones, otherwise the next ones")
    system = DISPENSER_SYSTEM

    def first_work(self, row: Any, work: Any) -> Any:
        state = DispenserState.FAILED if row.status.failed else DispenserState.READY
        return work.filter(state=state).in_order()

    def protecting(self) -> dict[Any, str]:
        return {**super().protecting(), Bucket: "dispenser"}


@admin.register(Bucket)
class BucketAdmin(ExactSearchMixin, ReadOnlyAdmin, OperationsAdminMixin):
    """Buckets, newest first; a worker has one per dispenser."""

    list_display = ("name", "dispenser", "status_badge", "holds", "fence")
    fields = ("dispenser", "name", "holder", "status_badge", "holds", "fence")
    list_filter = (DispenserFilter, BucketStatusFilter)
    list_select_related = ("dispenser",)
    search_fields = ("name",)
    search_help_text = _("The full name of a bucket (its worker's name).")
    actions = ()
    operations = by_name(REVOKE)
    time_annotations = {"micros_left": "busy_before"}

    def load_column_values(self, rows: Any) -> None:
        buckets = list(rows)
        if buckets:
            tasks = DispenserTask.objects.using(buckets[0]._state.db)
            groups = [tasks.filter(bucket_id=row.pk).values_list("state")[:MAX_COUNTED] for row in buckets]
            counted = count_groups(connections[tasks.db], groups, "state")
            for row, states in zip(buckets, counted, strict=True):
                row.count = states.total()

    @admin.display(description=_("state"))
    def status_badge(self, row: Any) -> str:
        if row.micros_left <= 0:
            return EXPIRED.html
        left = countdown(row.micros_left / 1_000_000, gettext("%s left"), gettext("expired"))
        return format_html("{} {}", LIVE.html, left)

    @admin.display(description=_("tasks"))
    def holds(self, row: Any) -> str:
        return link_to_list(
            self.admin_site, DispenserTask, row.count, dispenser=row.dispenser_id, bucket=row.name
        )


@admin.register(DispenserTask)
class DispenserTaskAdmin(WorkAdmin):
    list_display = (
        *("key", "dispenser", "score", "status_badge", "bucket", "expirations", "outcome"),
        *("added_at", "finished_at"),
    )
    fields = (
        *("dispenser", "key", "score", "status_badge", "outcome", "bucket", "expirations"),
        *("added_at", "assigned_at", "finished_at", "fence"),
    )
    list_filter = (
        DispenserFilter,
        choice_filter("state", _("state"), DispenserState.choices),
        text_filter("bucket", _("bucket"), narrow=_in_buckets_named),
    )
    list_select_related = ("dispenser", "bucket")
    search_fields = ("key",)
    search_help_text = _("The full key of a task.")

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        """Find tasks by their full key, with the index, which begins with the dispenser."""
        of_all = queryset.filter(dispenser_id__in=Dispenser.objects.using(queryset.db).values("pk"))
        return super().get_search_results(request, of_all if search_term.strip() else queryset, search_term)

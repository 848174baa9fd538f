"""Streams and their tasks in the admin."""

from typing import Any

from django.contrib import admin

from resourcepool.admin.containers import ContainerAdmin, WorkAdmin
from resourcepool.admin.filters import choice_filter, text_filter
from resourcepool.db.dialect import NullInOrder
from resourcepool.status.work.streams import STREAMS, SYSTEM, StreamStatus
from resourcepool.taskqueue.models import Stream, Task
from resourcepool.translation import gettext_lazy as _

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
    system = SYSTEM
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
        *(
            "stream",
            "key",
            "type",
            "lane",
            "params",
            "status_badge",
            "outcome",
            "attempts",
            "failures",
            "crashes",
        ),
        *("task_time", "submitted_at", "started_at", "finished_at", "holder", "term", "fence"),
    )
    list_filter = (text_filter("stream", _("stream")), TaskStatusFilter)
    search_fields = ("key",)
    search_help_text = _("The full key of a task.")
    filtered_ordering = dict.fromkeys(
        ("unfinished", "blocked"), (NullInOrder("finished_at"), "task_time", "pk")
    )

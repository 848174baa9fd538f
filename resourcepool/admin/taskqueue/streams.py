"""Streams and their tasks in the admin."""

from typing import Any

from django.contrib import admin
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.columns import lines
from resourcepool.admin.filters import choice, typed
from resourcepool.admin.places import PlaceAdmin, WorkAdmin
from resourcepool.dialect import NullInOrder
from resourcepool.status.reading import duration
from resourcepool.status.work.streams import STREAMS, StreamStatus, streams
from resourcepool.taskqueue.models import Stream, Task

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
TaskStandingFilter = choice(
    "standing",
    _("state"),
    lambda: [("unfinished", _("unfinished")), *Task.State.choices],
    lambda tasks, state: tasks.unfinished() if state == "unfinished" else tasks.filter(state=state),
)


@admin.register(Stream)
class StreamAdmin(PlaceAdmin):
    is_added_by_hand = True
    list_filter = (StreamStandingFilter,)
    show_facets = admin.ShowFacets.NEVER
    settings = (
        *("on_failure", "retries", "retry_delay", "most_deaths", "lanes"),
        *("term_ttl", "lock_delay", "done_kept", "is_paused"),
    )
    figures = ("standing", "led_by", "unfinished", "finished")
    work, place, read = Task, "stream", staticmethod(streams)

    def state_of(self, row: Any, status: StreamStatus) -> tuple[str, str]:
        if row.is_paused:
            return "draining", gettext("paused")
        if status.wrong or (status.first and not status.leader):
            return "quarantined", gettext("not running")
        if status.blocked:
            return "quarantined", gettext("blocked") if status.is_blocked else gettext("partly blocked")
        if status.first and status.first.waits and status.lanes == 1:
            return "cooling", gettext("waits for a retry")
        return ("free", gettext("at work")) if status.first else ("draining", gettext("nothing to do"))

    @admin.display(description=_("leader"))
    def led_by(self, row: Any) -> str:
        status: StreamStatus = row.status
        since = "" if status.since is None else gettext("for %s") % duration(status.since)
        standbys = ngettext("%d standby", "%d standbys", status.standbys) % status.standbys
        return lines(status.leader or gettext("no leader"), since, standbys if status.standbys else "")

    @admin.display(description=_("unfinished"))
    def unfinished(self, row: Any) -> str:
        first = row.status.first
        link = self.to_work(row.name, row.status.depth, standing="unfinished")
        return lines(link, gettext("the first is %s old") % duration(first.age) if first else "")


@admin.register(Task)
class TaskAdmin(WorkAdmin):
    list_display = ("key", "stream", "type", "colored", "attempts", "outcome", "submitted_at")
    fields = (
        *("stream", "key", "type", "lane", "params", "colored", "outcome", "attempts", "failures", "deaths"),
        *("task_time", "submitted_at", "started_at", "finished_at", "holder", "term", "fence"),
    )
    list_filter = (typed("stream", _("stream")), TaskStandingFilter)
    search_fields = ("key",)
    search_help_text = _("The whole key of a task.")
    in_turn = dict.fromkeys(("unfinished", "blocked"), (NullInOrder("finished_at"), "task_time", "pk"))

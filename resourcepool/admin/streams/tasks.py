"""Tasks in the admin: to be read, retried and discarded."""

from typing import Any

from django.contrib import admin
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.filters import choice, typed
from resourcepool.admin.generic import ByWholeName, ReadOnlyAdmin
from resourcepool.admin.streams.asking import AskingByRows
from resourcepool.admin.timeline import Timelined
from resourcepool.admin.words import moments, reasons
from resourcepool.operations.operation import by_name
from resourcepool.operations.work import DISCARD, RETRY
from resourcepool.taskqueue.models import Task

CSS = {Task.State.READY: "free", Task.State.RUNNING: "leased", Task.State.DONE: "free"}
UNFINISHED = "unfinished"

StreamFilter = typed("stream", _("stream"), _("its name"), lambda tasks, text: tasks.filter(stream_id=text))
StandingFilter = choice(
    "standing",
    _("state"),
    lambda: [(UNFINISHED, _("unfinished")), *Task.State.choices],
    lambda tasks, state: tasks.unfinished() if state == UNFINISHED else tasks.filter(state=state),
)


@admin.register(Task)
class TaskAdmin(ByWholeName, Timelined, ReadOnlyAdmin, AskingByRows):
    """The newest tasks first; of one stream with the filter."""

    list_display = (
        *("key", "stream", "type", "colored", "attempts", reasons("outcome", _("outcome"))),
        moments("submitted_at", _("submitted at")),
    )
    fields = (
        *(
            "stream",
            "key",
            "type",
            "lane",
            "params",
            "colored",
            list_display[5],
            "attempts",
            "failures",
            "deaths",
        ),
        *(moments("task_time", _("task time")), moments("submitted_at", _("submitted at"))),
        *(moments("started_at", _("started at")), moments("finished_at", _("finished at"))),
        *("holder", "term", "fence"),
    )
    list_filter = (StreamFilter, StandingFilter)
    search_fields = ("key",)
    search_help_text = _("The whole key of a task.")
    actions = ()
    operations = by_name(RETRY, DISCARD)

    @admin.display(description=_("state"))
    def colored(self, task: Any) -> str:
        """Show its state."""
        css = "quarantined" if task.state in task.failed_states else CSS.get(task.state, "draining")
        return format_html('<span class="resourcepool-state {}">{}</span>', css, task.get_state_display())

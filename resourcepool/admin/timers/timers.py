"""Timers in the admin: to be read, fired, cancelled, retried and discarded."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.filters import choice, typed
from resourcepool.admin.generic import ByWholeName, ReadOnlyAdmin
from resourcepool.admin.streams.asking import AskingByRows
from resourcepool.admin.timeline import Timelined
from resourcepool.admin.words import column, moments, reasons
from resourcepool.dialect import MicrosUntil
from resourcepool.operations.operation import by_name
from resourcepool.operations.timers import CANCEL, FIRE
from resourcepool.operations.work import DISCARD, RETRY
from resourcepool.status.durations import duration
from resourcepool.status.work.schedules import recurrence
from resourcepool.taskqueue.timers.models import Timer

CSS = {Timer.State.PENDING: "free", Timer.State.RUNNING: "leased", Timer.State.DONE: "free"}
OF_ROWS = ("unfinished", "due", "late")  # filters of the rows, beside the states

TopicFilter = typed("topic", _("topic"), _("its name"), lambda timers, text: timers.filter(topic_id=text))
StandingFilter = choice(
    "standing",
    _("state"),
    lambda: [
        ("unfinished", _("unfinished")),
        ("due", _("due")),
        ("late", _("late by a minute")),
        *Timer.State.choices,
    ],
    lambda timers, state: getattr(timers, state)() if state in OF_ROWS else timers.filter(state=state),
)


SCHEDULE = column("schedule", _("schedule"), recurrence)


@admin.register(Timer)
class TimerAdmin(ByWholeName, Timelined, ReadOnlyAdmin, AskingByRows):
    """The newest timers first; of one topic with the filter."""

    list_display = (
        *("name", "topic", "colored", moments("due_at", _("due at")), "when", SCHEDULE, "attempts"),
        reasons("outcome", _("outcome")),
    )
    fields = (
        *("topic", "name", "payload", "colored", list_display[3], "when", SCHEDULE, "catch_up"),
        *(list_display[7], "attempts", "failures", "deaths", "previous_end"),
        *(moments("scheduled_at", _("scheduled at")), moments("started_at", _("started at"))),
        moments("finished_at", _("finished at")),
        *("holder", "fence"),
    )
    list_filter = (TopicFilter, StandingFilter)
    search_fields = ("name",)
    search_help_text = _("The whole name of a timer.")
    actions = ()
    operations = by_name(FIRE, CANCEL, RETRY, DISCARD)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the timers, each with the time until it may begin, by the database's clock."""
        rows: QuerySet[Any] = super().get_queryset(request).annotate(db_left=MicrosUntil("busy_before"))
        return rows

    @admin.display(description=_("state"))
    def colored(self, timer: Any) -> str:
        """Show its state."""
        css = "quarantined" if timer.state in Timer.failed_states else CSS.get(timer.state, "draining")
        return format_html('<span class="resourcepool-state {}">{}</span>', css, timer.get_state_display())

    @admin.display(description=_("when"))
    def when(self, timer: Any) -> str:
        """Show in how long it fires, or for how long it has been due."""
        if timer.finished_at is not None:
            return ""
        left = timer.db_left / 1_000_000
        if timer.state == Timer.State.PENDING and timer.holder and left > 0:
            return gettext("handed over, not taken yet")
        if timer.state == Timer.State.PENDING and left > 0:
            return gettext("in %s") % duration(left)
        if timer.state == Timer.State.PENDING:
            return gettext("due for %s") % duration(-left)
        if left <= 0:
            return gettext("its handler's process has died; it fires again")
        return ""

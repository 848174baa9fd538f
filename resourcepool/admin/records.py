"""Events, moves, samples, tickets, jobs and elections: to be read, never to be changed by hand."""

from collections.abc import Callable
from functools import partial, reduce
from itertools import filterfalse
from operator import or_
from typing import Any

from django.contrib import admin
from django.db.models import Max, Q
from django.http import HttpRequest
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.activity import ActivityAdminMixin
from resourcepool.admin.base import ExactSearchMixin, ReadOnlyAdmin
from resourcepool.admin.columns import datetime_column, duration_column, for_time_since, lines, link_to_page
from resourcepool.admin.describe import OF_ELECTIONS, happened
from resourcepool.admin.filters import choice_filter, text_filter
from resourcepool.admin.queues.filters import MoveFilter, NamedQueueGroupFilter
from resourcepool.dashboard.access import can_view
from resourcepool.elections.models import Election as ElectionRow
from resourcepool.elections.models import election_models
from resourcepool.elections.term import standbys
from resourcepool.history.models import Event, Sample
from resourcepool.jobs import Job
from resourcepool.queues.models import Move
from resourcepool.resources.registry import resource_models
from resourcepool.signals import EventKind
from resourcepool.taskqueue.abstract import recorded_models, work_models
from resourcepool.waiting.models import Ticket

NEWEST = 100_000  # events or moves that filters look at: no index serves every filter
SHOWN = 5  # standbys of one election
PAST = {"hour": 3_600, "day": 86_400, "week": 7 * 86_400}  # seconds


def models_with_events() -> list[Any]:
    """Return the models of whose rows the history tells."""
    return [*resource_models(), *election_models(), *recorded_models()]


def _names(models: Callable[[], list[Any]]) -> Callable[[], list[tuple[str, Any]]]:
    return lambda: [(model._meta.label_lower, model._meta.verbose_name_plural) for model in models()]


def _of_a_kind(events: Any, what: str) -> Any:
    return events.acquisitions() if what == EventKind.ACQUIRED else events.filter(what=what)


PoolFilter = choice_filter("pool", _("pool"), _names(resource_models))
EventPoolFilter = choice_filter("pool", _("pool"), _names(models_with_events))
KINDS = [
    (what.value, format_lazy("{}, {}", what.label, OF_ELECTIONS[what]) if what in OF_ELECTIONS else what.label)
    for what in EventKind
]
WhatFilter = choice_filter("what", _("what"), KINDS, _of_a_kind)
PastFilter = choice_filter(
    "past",
    _("when"),
    [("hour", _("past hour")), ("day", _("past 24 hours")), ("week", _("past 7 days"))],
    lambda events, past: events.since(PAST[past]) if past in PAST else events,
)
EventHolderFilter = text_filter(
    "held_by", _("holder"), _("how it begins"), lambda events, text: events.filter(holder__startswith=text)
)
ActorFilter = text_filter(
    "by", _("operator"), _("the user's name"), lambda events, text: events.filter(actor=text)
)


def newest(rows: Any) -> Any:
    last = rows.model._default_manager.aggregate(last=Max("pk"))["last"] or 0
    return rows.filter(pk__gt=last - NEWEST)


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    """The newest events; of one resource, all that are kept."""

    list_display = (
        *("at", "happened", "pool", "resource", "fence", "holder", "host"),
        *(duration_column("seconds", _("lasted")), "actor", "reason"),
    )
    fields = (
        *("at", "happened", "pool", "row", "fence", "holder", "host", "pid"),
        *(datetime_column("began_at", _("since")), duration_column("seconds", _("lasted")), "actor", "reason"),
    )
    list_filter = (EventPoolFilter, WhatFilter, PastFilter, EventHolderFilter, ActorFilter)
    search_fields = ("row",)
    search_help_text = _(
        "The number of a resource, the name of a stream, a dispenser, a topic or an election, or one of these and the"
        " key of a task or the name of a timer (oracle/req-42) shows all of its events. Filters look at the newest"
        " 100,000 events."
    )

    @admin.display(description=_("what"))
    def happened(self, event: Event) -> str:
        return happened(event)

    @admin.display(description=_("resource"))
    def resource(self, event: Event) -> str:
        model = {model._meta.label_lower: model for model in models_with_events()}.get(event.pool)
        return link_to_page(self.admin_site, model, event.row, event.row) if model else event.row

    def get_queryset(self, request: HttpRequest) -> Any:
        """Return the events without those of tasks and timers that may not be seen: they quote errors of the work."""
        events = super().get_queryset(request)
        work = filterfalse(partial(can_view, self.admin_site, request), work_models())
        hidden = [model._meta.label_lower for model in work]
        return events.exclude(pool__in=hidden) if hidden else events

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        """Find a resource's events by its key, the way the index has them; without it, only the newest ones."""
        if term := search_term.strip():
            place, slash, key = term.partition("/")
            if slash and (work := [row for model in work_models() for row in model.objects.named(place, key)]):
                of_each = (Q(pool=row._meta.label_lower, row=str(row.pk)) for row in work)
                return queryset.filter(reduce(or_, of_each)), False
            pools = [model._meta.label_lower for model in models_with_events()]
            return queryset.filter(pool__in=pools, row=term), False
        return newest(queryset), False


@admin.register(Move)
class MoveAdmin(ExactSearchMixin, ReadOnlyAdmin):
    """The newest moves: which queue went from which server to which, and why."""

    list_display = fields = (
        *("at", "queue_group", "generation", "queue_id", "what", "from_server", "to_server", "fence", "reason"),
    )
    list_filter = (NamedQueueGroupFilter, MoveFilter)
    search_fields = ("queue_id",)
    search_help_text = _("The whole id of a queue. Filters and the search look at the newest 100,000 moves.")

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        return super().get_search_results(request, newest(queryset), search_term)


@admin.register(Sample)
class SampleAdmin(ReadOnlyAdmin):
    """How the pools stood, minute by minute."""

    list_display = fields = (
        *("minute", "pool", "free", "leased", "away", "waiters"),
        *(duration_column("oldest_wait", _("longest wait")), "acquired", "lost"),
    )
    list_filter = (PoolFilter,)


@admin.register(Ticket)
class TicketAdmin(ExactSearchMixin, ReadOnlyAdmin):
    """Who waits; tickets of those who were served or died stay for a moment, or until somebody next waits."""

    list_display = ("pool", "holder", "is_alive", "count", "priority", "asked_at", "selector")
    fields = (*list_display, "fence")
    list_filter = (PoolFilter,)
    search_fields = ("holder__startswith",)
    search_help_text = _("How the holder begins, such as the name of a host.")
    time_annotations = {"micros_left": "busy_before"}

    @admin.display(description=_("still waits"), boolean=True)
    def is_alive(self, ticket: Any) -> bool:
        return bool(ticket.micros_left > 0 and ticket.holder and ticket.is_waiting)


@admin.register(Job)
class JobAdmin(ExactSearchMixin, ReadOnlyAdmin):
    """What is done now and then, and when it was done last."""

    list_display = (
        *("name", "done_at", duration_column("seconds", _("took"))),
        *("result", "failed_at", "holder", "busy_before"),
    )
    ordering = ("name",)
    fields = (*list_display, "fence")
    search_fields = ("name__begins",)
    search_help_text = _("How the name begins; upper and lower case differ.")


@admin.register(ElectionRow)
class ElectionAdmin(ActivityAdminMixin, ReadOnlyAdmin):
    """One row for each name that was ever campaigned for; streams and jobs have lists of their own."""

    list_display = ("name", "led_by", "fence")
    fields = ("name", "led_by", "waiting", "fence")
    search_fields = ("name",)
    ordering = ("name",)
    time_annotations = {"micros_left": "busy_before", "micros_led": "elected_at"}

    @admin.display(description=_("leader"))
    def led_by(self, row: Any) -> str:
        if not row.holder or row.micros_left <= 0:
            return gettext("no leader")
        is_noted = row.elected_term == row.fence and row.micros_led is not None
        return lines(row.holder, for_time_since(row.micros_led) if is_noted else "")

    @admin.display(description=_("standbys"))
    def waiting(self, row: Any) -> str:
        line = standbys(row._state.db, ElectionRow, row.name).order_by("priority", "pk")
        holders = list(line.values_list("holder", flat=True)[: SHOWN + 1])
        return lines("", *holders[:SHOWN], ".." if len(holders) > SHOWN else "") if holders else gettext("none")

"""Events, moves, samples, tickets, jobs and elections: read-only lists."""

from collections.abc import Callable
from functools import partial, reduce
from itertools import filterfalse
from operator import or_
from typing import Any

from django.contrib import admin
from django.db.models import Max, Q
from django.http import HttpRequest
from django.utils.text import format_lazy

from resourcepool.admin.activity import ActivityAdminMixin
from resourcepool.admin.base import ExactSearchMixin, ReadOnlyAdmin
from resourcepool.admin.columns import datetime_column, duration_column, for_time_since, lines, link_to_page
from resourcepool.admin.describe import ELECTION_LABELS, event_text
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
from resourcepool.translation import gettext
from resourcepool.translation import gettext_lazy as _
from resourcepool.waiting.models import Ticket

NEWEST = 100_000  # events or moves that filters search, because no index supports every filter
SHOWN = 5  # standbys listed for an election
PAST_SECONDS = {"hour": 3_600, "day": 86_400, "week": 7 * 86_400}


def models_with_events() -> list[Any]:
    """Return the models whose rows have events."""
    return [*resource_models(), *election_models(), *recorded_models()]


def _model_choices(models: Callable[[], list[Any]]) -> Callable[[], list[tuple[str, Any]]]:
    return lambda: [(model._meta.label_lower, model._meta.verbose_name_plural) for model in models()]


def _of_kind(events: Any, what: str) -> Any:
    return events.acquisitions() if what == EventKind.ACQUIRED else events.filter(what=what)


PoolFilter = choice_filter("pool", _("pool"), _model_choices(resource_models))
EventPoolFilter = choice_filter("pool", _("pool"), _model_choices(models_with_events))
KIND_CHOICES = [
    (
        what.value,
        format_lazy("{}, {}", what.label, ELECTION_LABELS[what]) if what in ELECTION_LABELS else what.label,
    )
    for what in EventKind
]
EventKindFilter = choice_filter("what", _("event"), KIND_CHOICES, _of_kind)
PastFilter = choice_filter(
    "past",
    _("when"),
    [("hour", _("past hour")), ("day", _("past 24 hours")), ("week", _("past 7 days"))],
    lambda events, past: events.since(PAST_SECONDS[past]) if past in PAST_SECONDS else events,
)
EventHolderFilter = text_filter(
    "held_by", _("holder"), _("starts with"), lambda events, text: events.filter(holder__startswith=text)
)
ActorFilter = text_filter("by", _("operator"), _("user name"), lambda events, text: events.filter(actor=text))


def newest(rows: Any) -> Any:
    """Return those of ``rows`` that are among the newest ``NEWEST`` of their table."""
    last = rows.model._default_manager.aggregate(last=Max("pk"))["last"] or 0
    return rows.filter(pk__gt=last - NEWEST)


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    """The newest events; all kept events of a resource that the search names."""

    list_display = (
        *("at", "event_text", "pool", "resource", "fence", "holder", "host"),
        *(duration_column("seconds", _("lasted")), "actor", "reason"),
    )
    fields = (
        *("at", "event_text", "pool", "row", "fence", "holder", "host", "pid"),
        *(datetime_column("began_at", _("since")), duration_column("seconds", _("lasted")), "actor", "reason"),
    )
    list_filter = (EventPoolFilter, EventKindFilter, PastFilter, EventHolderFilter, ActorFilter)
    search_fields = ("row",)
    search_help_text = _(
        "Finds all events of one row: enter the id of a resource, the name of a stream, dispenser, topic or election,"
        " or a task or timer as name/key (oracle/req-42). Filters search the newest 100,000 events."
    )

    @admin.display(description=_("event"))
    def event_text(self, event: Event) -> str:
        return event_text(event)

    @admin.display(description=_("resource"))
    def resource(self, event: Event) -> str:
        model = {model._meta.label_lower: model for model in models_with_events()}.get(event.pool)
        return link_to_page(self.admin_site, model, event.row, event.row) if model else event.row

    def get_queryset(self, request: HttpRequest) -> Any:
        """Hide events of tasks and timers that the user may not view: they quote error messages."""
        events = super().get_queryset(request)
        hidden_models = filterfalse(partial(can_view, self.admin_site, request), work_models())
        hidden = [model._meta.label_lower for model in hidden_models]
        return events.exclude(pool__in=hidden) if hidden else events

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        """Find the events of a row by its key, using the index; without a term, only the newest events."""
        if term := search_term.strip():
            container, slash, key = term.partition("/")
            if slash and (
                work := [row for model in work_models() for row in model.objects.named(container, key)]
            ):
                conditions = (Q(pool=row._meta.label_lower, row=str(row.pk)) for row in work)
                return queryset.filter(reduce(or_, conditions)), False
            pools = [model._meta.label_lower for model in models_with_events()]
            return queryset.filter(pool__in=pools, row=term), False
        return newest(queryset), False


@admin.register(Move)
class MoveAdmin(ExactSearchMixin, ReadOnlyAdmin):
    """Moves, newest first: which queue went from which server to which, and why."""

    list_display = fields = (
        *("at", "queue_group", "generation", "queue_id", "what", "from_server", "to_server", "fence", "reason"),
    )
    list_filter = (NamedQueueGroupFilter, MoveFilter)
    search_fields = ("queue_id",)
    search_help_text = _(
        "Enter the complete id of a queue. Filters and search cover only the newest 100,000 moves."
    )

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        return super().get_search_results(request, newest(queryset), search_term)


@admin.register(Sample)
class SampleAdmin(ReadOnlyAdmin):
    """The state of each pool, minute by minute."""

    list_display = fields = (
        *("minute", "pool", "free", "leased", "away", "waiters"),
        *(duration_column("oldest_wait", _("longest wait")), "acquired", "lost"),
    )
    list_filter = (PoolFilter,)


@admin.register(Ticket)
class TicketAdmin(ExactSearchMixin, ReadOnlyAdmin):
    """Waiters; tickets of served or crashed waiters stay until the next caller waits."""

    list_display = ("pool", "holder", "is_alive", "count", "priority", "asked_at", "selector")
    fields = (*list_display, "fence")
    list_filter = (PoolFilter,)
    search_fields = ("holder__startswith",)
    search_help_text = _("The start of the holder, such as a host name.")
    time_annotations = {"micros_left": "busy_before"}

    @admin.display(description=_("waiting"), boolean=True)
    def is_alive(self, ticket: Any) -> bool:
        return bool(ticket.micros_left > 0 and ticket.holder and ticket.is_waiting)


@admin.register(Job)
class JobAdmin(ExactSearchMixin, ReadOnlyAdmin):
    """Periodic jobs and their last runs."""

    list_display = (
        *("name", "done_at", duration_column("seconds", _("took"))),
        *("result", "failed_at", "holder", "busy_before"),
    )
    ordering = ("name",)
    fields = (*list_display, "fence")
    search_fields = ("name__begins",)
    search_help_text = _("The start of the name; case-sensitive.")


@admin.register(ElectionRow)
class ElectionAdmin(ActivityAdminMixin, ReadOnlyAdmin):
    """One row for each election; streams and jobs have their own lists."""

    list_display = ("name", "led_by", "fence")
    fields = ("name", "led_by", "waiting", "fence")
    search_fields = ("name",)
    ordering = ("name",)
    time_annotations = {"micros_left": "busy_before", "micros_led": "elected_at"}

    @admin.display(description=_("leader"))
    def led_by(self, row: Any) -> str:
        if not row.holder or row.micros_left <= 0:
            return gettext("no leader")
        is_current = row.elected_term == row.fence and row.micros_led is not None
        return lines(row.holder, for_time_since(row.micros_led) if is_current else "")

    @admin.display(description=_("standbys"))
    def waiting(self, row: Any) -> str:
        waiters = standbys(row._state.db, ElectionRow, row.name).order_by("priority", "pk")
        holders = list(waiters.values_list("holder", flat=True)[: SHOWN + 1])
        return lines("", *holders[:SHOWN], ".." if len(holders) > SHOWN else "") if holders else gettext("none")

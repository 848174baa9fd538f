"""Pages of the tasks of a stream or dispenser, or of the timers of a topic, without parameters and payloads."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple

from django.db import connections, router
from django.db.models import Case, F, When
from django.db.models.functions import Greatest

from resourcepool import options
from resourcepool.db.retry import retrying
from resourcepool.exceptions import BadOption
from resourcepool.status.snapshots import Since, Until
from resourcepool.status.system import Figure, Unit, age, count, text
from resourcepool.status.times import exact_duration
from resourcepool.taskqueue.abstract import existing_names
from resourcepool.taskqueue.dispenser.models import DispenserTask
from resourcepool.taskqueue.models import MAX_KEY, Task
from resourcepool.taskqueue.timers.models import Timer
from resourcepool.taskqueue.timers.occurrences import Cron, Every, read
from resourcepool.translation import gettext, gettext_lazy as _

MAX_LISTED = 200


def recurrence(text: str) -> str:
    """Return a schedule as text: "every 5 min", "30 7 * * 1-5 (Europe/Berlin)"; "": it fires once."""
    try:
        schedule = read(text)
    except (ValueError, LookupError, TypeError):  # written past validation
        return text
    if isinstance(schedule, Every):
        return gettext("every %s") % exact_duration(schedule.seconds)
    return f"{schedule.fields} ({schedule.tz})" if isinstance(schedule, Cron) else ""


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """A task of a stream; times in seconds.

    Attributes:
        age: time since it was submitted.
        waits: time until it may be tried; negative: how long it has been ready to be tried; None: it is not ready.
        holder: the process that runs it, or ran it last.
    """

    key: str
    type: str
    lane: str
    state: str
    attempts: int
    age: float
    waits: float | None
    holder: str
    outcome: str


@dataclass(frozen=True, slots=True)
class DispensedStatus:
    """A task of a dispenser; times in seconds.

    Attributes:
        worker: the worker whose bucket it is in; None: in no bucket.
        age: time since it was added.
    """

    key: str
    score: float
    state: str
    worker: str | None
    expirations: int
    age: float
    outcome: str


@dataclass(frozen=True, slots=True)
class TimerStatus:
    """A timer; times in seconds.

    Attributes:
        due_in: time until it may begin; negative: how long it has been due; None: it is not pending.
        schedule: of a recurring timer, as JSON; "": it fires once.
    """

    name: str
    state: str
    due_in: float | None
    schedule: str
    attempts: int
    holder: str
    outcome: str


def _until_in(state: str, moment: Any) -> Case:
    return Case(When(state=state, then=Until(moment)))


FIRST_TRY = Greatest("busy_before", "submitted_at")  # a new row has not been busy since 2000

# The status class of each kind of work, and its fields that are not columns.
KINDS: dict[Any, tuple[type, Mapping[str, Any]]] = {
    Task: (TaskStatus, {"age": Since("submitted_at"), "waits": _until_in(Task.State.READY, FIRST_TRY)}),
    DispenserTask: (DispensedStatus, {"age": Since("added_at"), "worker": F("bucket__name")}),
    Timer: (TimerStatus, {"due_in": _until_in(Timer.State.PENDING, "busy_before")}),
}


def _state(model: Any) -> Figure:
    labels = dict(model.State.choices)
    return text(_("state"), lambda one: labels.get(one.state, one.state))


ATTEMPTS, HOLDER = count(_("attempts"), "attempts"), text(_("holder"), "holder")
OUTCOME = Figure(Unit.SENTENCE, _("outcome"), "outcome")
FIGURES: dict[Any, tuple[Figure, ...]] = {
    Task: (
        text(_("key"), "key"),
        text(_("type"), "type"),
        _state(Task),
        ATTEMPTS,
        age(_("submitted"), "age"),
        Figure(Unit.DUE, _("next attempt"), "waits"),
        HOLDER,
        OUTCOME,
    ),
    DispenserTask: (
        text(_("key"), "key"),
        Figure(Unit.NUMBER, _("score"), lambda one: f"{one.score:g}"),
        _state(DispenserTask),
        text(_("worker"), "worker"),
        count(_("expirations"), "expirations"),
        age(_("added"), "age"),
        OUTCOME,
    ),
    Timer: (
        text(_("timer"), "name"),
        _state(Timer),
        Figure(Unit.DUE, _("fires"), "due_in"),
        text(_("schedule"), lambda one: recurrence(one.schedule)),
        ATTEMPTS,
        HOLDER,
        OUTCOME,
    ),
}


class WorkPage(NamedTuple):
    """A page of tasks or timers, by key or name; ``after``: the argument for the next page, "" at the end."""

    work: list[Any]
    after: str


def page_of_work(
    model: Any, place: str, *, state: str = "", after: str = "", limit: int = MAX_LISTED
) -> WorkPage:
    """Return the tasks or timers of this stream, dispenser or topic, by key or name, in one statement.

    Args:
        model: one of ``KINDS``.
        place: the name of the stream, dispenser or topic.
        state: only work in this state; "": all.
        after: only work whose key or name comes after this one.
        limit: 1 to ``MAX_LISTED``.

    Raises:
        BadOption: there is no such stream, dispenser or topic, or a value is not allowed.
        DatabaseUnavailable: the database cannot be read.
    """
    limit = options.whole("limit", limit, least=1, most=MAX_LISTED)
    connection = connections[router.db_for_write(model)]  # a replica may not have it yet
    using = connection.alias
    if not place.isprintable():  # not a valid name; some databases refuse such text
        raise _unknown(model, place, using)
    place_column, name_column = model.key_columns
    rows = model.objects.using(using).filter(**{place_column: place}).order_by(name_column)
    if state:
        rows = rows.filter(state=options.one_of("state", state, model.State.values))
    if after:
        rows = rows.filter(**{f"{name_column}__gt": options.text("after", after, most=MAX_KEY)})
    status, others = KINDS[model]
    chosen = rows.annotate(**others).values(*(field.name for field in fields(status)))[: limit + 1]
    fetch_rows: list[dict[str, Any]] = retrying(connection, partial(list, chosen))
    if not fetch_rows and not retrying(connection, _place(model).objects.using(using).filter(pk=place).exists):
        raise _unknown(model, place, using)
    work = [status(**row) for row in fetch_rows[:limit]]
    return WorkPage(work, getattr(work[-1], name_column) if len(fetch_rows) > limit else "")


def _place(model: Any) -> Any:
    return model._meta.get_field(model.key_columns[0].removesuffix("_id")).related_model


def _unknown(model: Any, name: str, using: str) -> BadOption:
    return BadOption(_place(model)._meta.model_name, name, existing_names(_place(model), using))

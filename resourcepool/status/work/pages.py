"""The tasks of a stream or a dispenser, and the timers of a topic, page by page: without parameters and payloads."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple

from django.db import connections, router
from django.db.models import Case, F, When
from django.db.models.functions import Greatest

from resourcepool import options
from resourcepool.database.retry import retrying
from resourcepool.exceptions import BadOption
from resourcepool.status.snapshots import Since, Until
from resourcepool.taskqueue.abstract import existing_names
from resourcepool.taskqueue.dispenser.models import DispenserTask
from resourcepool.taskqueue.models import MAX_KEY, Task
from resourcepool.taskqueue.timers.models import Timer

MAX_LISTED = 200


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """A task of a stream; times in seconds.

    Attributes:
        age: since it was submitted.
        waits: until it may be tried; negative: for so long it could have been, since it was submitted or was to be
            tried again; None: it is not ready.
        holder: who runs it, or has run it last.
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
        worker: whose bucket it is in; None: in none.
        age: since it was added.
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
        due_in: until it may begin; negative: for so long it could have begun; None: it is not pending.
        schedule: of one that fires again and again, as JSON; "": it fires once.
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

# What is told of each kind of work, and what of it is no column of its own.
KINDS: dict[Any, tuple[type, Mapping[str, Any]]] = {
    Task: (TaskStatus, {"age": Since("submitted_at"), "waits": _until_in(Task.State.READY, FIRST_TRY)}),
    DispenserTask: (DispensedStatus, {"age": Since("added_at"), "worker": F("bucket__name")}),
    Timer: (TimerStatus, {"due_in": _until_in(Timer.State.PENDING, "busy_before")}),
}


class WorkPage(NamedTuple):
    """Some of the work of one place, by key or name; ``after``: what to ask for the next page with, "" at the end."""

    work: list[Any]
    after: str


def page_of_work(
    model: Any, place: str, *, state: str = "", after: str = "", limit: int = MAX_LISTED
) -> WorkPage:
    """Return the work of this stream, dispenser or topic, by key or name: one statement.

    Args:
        model: one of ``KINDS``.
        state: only those in this state; "": all of them.
        after: only those whose key or name comes after this one.
        limit: 1 to ``MAX_LISTED``.

    Raises:
        BadOption: there is no such place, or a value is not allowed.
        DatabaseUnavailable: they cannot be read.
    """
    limit = options.whole("limit", limit, least=1, most=MAX_LISTED)
    connection = connections[router.db_for_write(model)]  # a replica may not have it yet
    using = connection.alias
    if not place.isprintable():  # no place has such a name, and no database can be asked for each
        raise _unknown(model, place, using)
    column, called = model.named_by
    rows = model.objects.using(using).filter(**{column: place}).order_by(called)
    if state:
        rows = rows.filter(state=options.one_of("state", state, model.State.values))
    if after:
        rows = rows.filter(**{f"{called}__gt": options.text("after", after, most=MAX_KEY)})
    status, others = KINDS[model]
    chosen = rows.annotate(**others).values(*(field.name for field in fields(status)))[: limit + 1]
    read: list[dict[str, Any]] = retrying(connection, partial(list, chosen))
    if not read and not retrying(connection, _place(model).objects.using(using).filter(pk=place).exists):
        raise _unknown(model, place, using)
    found = [status(**row) for row in read[:limit]]
    return WorkPage(found, getattr(found[-1], called) if len(read) > limit else "")


def _place(model: Any) -> Any:
    return model._meta.get_field(model.named_by[0].removesuffix("_id")).related_model


def _unknown(model: Any, name: str, using: str) -> BadOption:
    return BadOption(_place(model)._meta.model_name, name, existing_names(_place(model), using))

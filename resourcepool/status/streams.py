"""How the streams stand: who leads, what waits, what went wrong, and why nothing runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from django.db import connections, router
from django.db.models import Count, Q
from django.utils.translation import gettext as _

from resourcepool.database.retry import retrying
from resourcepool.dialect import DbLater, MicrosUntil
from resourcepool.elections.term import standbys
from resourcepool.events import shown
from resourcepool.exceptions import BadOption
from resourcepool.status.alarm import ABOUT_STREAMS, Alarm, Kind
from resourcepool.status.durations import duration
from resourcepool.taskqueue.models import Stream, Task
from resourcepool.taskqueue.submitting import names_of_streams

MOST_STREAMS = 200
MOST_COUNTED = 10_000  # tasks; more would keep the database busy for too long
RECENT = 60.0  # seconds
State = Task.State


@dataclass(frozen=True, slots=True)
class FirstTask:
    """The task that is first in a stream; times in seconds.

    Attributes:
        waits: until it may be tried again; 0: it may now.
        runs: for how long it has been running; None: it is not.
    """

    key: str
    type: str
    state: str
    outcome: str
    age: float
    waits: float
    runs: float | None


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """How one stream stands; times in seconds.

    Attributes:
        leader: who runs its tasks; "": nobody.
        since: for how long that has been so; None: nobody leads, or the term is new.
        standbys: how many wait to lead.
        depth: unfinished tasks, counted up to ``MOST_COUNTED``.
        first: the first of them; None: there is none.
        blocked, dead: how many wait for an operator among as many unfinished, and the last finished, tasks.
        done, failed: how many finished within the last minute, up to ``MOST_COUNTED``.
    """

    name: str
    leader: str
    term: int
    since: float | None
    standbys: int
    is_paused: bool
    lanes: int
    depth: int
    first: FirstTask | None
    blocked: int
    dead: int
    done: int
    failed: int

    ALSO: ClassVar = ("because",)

    @property
    def because(self) -> str:
        """Why nothing runs, in a sentence; "": something runs, or there is nothing to do."""
        return next(_reasons(self), "")


def streams(name: str | None = None) -> list[StreamStatus]:
    """Return how each stream stands, or the one of this name; at most ``MOST_STREAMS``.

    Raises:
        BadOption: there is no such stream.
        DatabaseUnavailable: they cannot be read.
    """
    connection = connections[router.db_for_read(Stream)]
    using = connection.alias
    rows = Stream.objects.using(using).order_by("pk")
    if name is not None:
        rows = rows.filter(pk=name)
    rows = rows.annotate(left=MicrosUntil("busy_before"), began=MicrosUntil("elected_at"))
    found = retrying(connection, lambda: list(rows[:MOST_STREAMS]))
    if name is not None and not found:
        raise BadOption("stream", name, names_of_streams(using))
    return [retrying(connection, partial(_status, using, row)) for row in found]


def of_streams(found: Sequence[StreamStatus], oldest: float) -> Iterator[Alarm]:
    """Yield what is wrong with these; ``oldest``: the age in seconds from which the first task is late."""
    for one in found:
        about = f"{ABOUT_STREAMS}{one.name}"
        if one.first is None or one.is_paused:
            continue
        if not one.leader:
            yield Alarm(Kind.NO_CONSUMER, about, _("%s.") % one.because)
        elif one.first.state == State.BLOCKED and one.lanes == 1:
            yield Alarm(Kind.BLOCKED, about, _("%s.") % one.because)
        elif one.first.age > oldest:
            told = {"key": one.first.key, "age": duration(one.first.age), "count": one.depth}
            text = _("its first task, %(key)s, is %(age)s old; unfinished: %(count)d.") % told
            yield Alarm(Kind.LATE_TASKS, about, f"{text} {one.because}".rstrip())


def _status(using: str, row: Any) -> StreamStatus:
    tasks = Task.objects.using(using).filter(stream_id=row.pk)
    unfinished = (
        tasks.unfinished()
        .in_order()[:MOST_COUNTED]
        .aggregate(depth=Count("pk"), blocked=Count("pk", filter=Q(state=State.BLOCKED)))
    )
    recent = Q(finished_at__gt=DbLater(-RECENT))
    finished = (
        tasks.exclude(finished_at=None)
        .order_by("-finished_at")[:MOST_COUNTED]
        .aggregate(
            dead=Count("pk", filter=Q(state=State.DEAD)),
            done=Count("pk", filter=recent & Q(state=State.DONE)),
            failed=Count("pk", filter=recent & Q(state__in=(State.SKIPPED, State.DEAD))),
        )
    )
    is_led = bool(row.holder) and row.left > 0
    is_noted = row.elected_term == row.fence and row.began is not None
    return StreamStatus(
        name=row.name,
        leader=row.holder if is_led else "",
        term=row.fence,
        since=max(0.0, -row.began / 1_000_000) if is_led and is_noted else None,
        standbys=standbys(using, Stream, row.pk).count(),
        is_paused=row.is_paused,
        lanes=row.lanes,
        first=_first(tasks),
        **unfinished,
        **finished,
    )


def _first(tasks: Any) -> FirstTask | None:
    columns = ("key", "type", "state", "outcome")
    moments = (MicrosUntil("submitted_at"), MicrosUntil("busy_before"), MicrosUntil("started_at"))
    row = tasks.unfinished().in_order().values_list(*columns, *moments).first()
    if row is None:
        return None
    key, kind, state, outcome, age, waits, began = row
    is_running = state == State.RUNNING
    return FirstTask(
        key,
        kind,
        state,
        outcome,
        age=-age / 1_000_000,
        waits=max(0.0, waits / 1_000_000) if state == State.READY else 0.0,
        runs=-began / 1_000_000 if is_running and began is not None else None,
    )


def _reasons(stream: StreamStatus) -> Iterator[str]:
    first = stream.first
    if first is None:
        return
    if not stream.leader:
        yield _("no consumer leads it; start one: `manage.py resourcepool_consume %s`") % stream.name
    if stream.is_paused:
        yield _("it is paused")
    if first.state == State.BLOCKED and stream.lanes == 1:
        told = {"key": first.key, "outcome": shown(first.outcome)}
        yield _("task %(key)s blocks it: %(outcome)s. Retry or discard it") % told
    if first.waits:
        told = {"key": first.key, "time": duration(first.waits), "outcome": shown(first.outcome)}
        yield _("task %(key)s will be retried in %(time)s; last error: %(outcome)s") % told

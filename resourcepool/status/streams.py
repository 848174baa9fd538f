"""How the streams stand: who leads, what waits, what went wrong, and why nothing runs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, Count, OuterRef, Subquery, When
from django.utils.translation import gettext as _

from resourcepool.database.tallies import tallies
from resourcepool.dialect import DbLater, MicrosUntil
from resourcepool.elections.models import selector
from resourcepool.events import joined, shown
from resourcepool.status.alarm import ABOUT_STREAMS, Alarm, Kind
from resourcepool.status.durations import duration
from resourcepool.status.work.places import Places
from resourcepool.taskqueue.models import Stream, StreamQuerySet, Task
from resourcepool.waiting.models import Ticket

MOST_COUNTED = 10_000  # tasks; more would keep the database busy for too long
RECENT = 60.0  # seconds
State = Task.State


@dataclass(frozen=True, slots=True)
class FirstTask:
    """The task that is first in a stream; times in seconds.

    Attributes:
        key, type, outcome: "" where they are not for whoever asks.
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
        wrong: which settings have values that they must not have.
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
    wrong: str = ""

    ALSO: ClassVar = ("because",)

    @property
    def because(self) -> str:
        """Why nothing runs, all reasons in one sentence; "": something runs, or there is nothing to do."""
        return shown(joined([*_reasons(self)]))

    def discreet(self) -> "StreamStatus":
        """Return what somebody may know of it who may not see tasks: neither a task's key nor its error."""
        return (
            self
            if self.first is None
            else replace(self, first=replace(self.first, key="", type="", outcome=""))
        )


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
            text = _("its first task, %(key)s, is %(age)s old; unfinished: %(count)d.")
            if not one.first.key:
                text = _("its first task is %(age)s old; unfinished: %(count)d.")
            yield Alarm(Kind.LATE_TASKS, about, f"{text % told} {one.because}".rstrip())


def _annotated(rows: Any) -> Any:
    first = Task.objects.in_line().filter(stream_id=OuterRef("pk")).values("pk")[:1]
    return rows.annotate(
        first=Subquery(first), left=MicrosUntil("busy_before"), began=MicrosUntil("elected_at")
    )


def _read(connection: BaseDatabaseWrapper, rows: list[Any]) -> list[StreamStatus]:
    using = connection.alias
    tasks = Task.objects.using(using)
    firsts = _firsts(tasks.unfinished().filter(pk__in=[row.first for row in rows if row.first is not None]))
    line = Ticket.objects.using(using).for_rows_of(Stream).waiting()
    waiting = dict(line.order_by().values_list("selector").annotate(Count("pk")))
    keys = [row.pk for row in rows]
    unfinished = tallies(connection, [_unfinished(tasks, key) for key in keys], "state")
    finished = tallies(connection, [_finished(tasks, key) for key in keys], "state", "is_recent")
    return [
        _status(row, firsts.get(row.pk), waiting.get(selector(row.pk), 0), *counts)
        for row, *counts in zip(rows, unfinished, finished, strict=True)
    ]


def _unfinished(tasks: Any, stream: str) -> Any:
    return tasks.in_line().filter(stream_id=stream).values_list("state")[:MOST_COUNTED]


def _finished(tasks: Any, stream: str) -> Any:
    recent = When(finished_at__gt=DbLater(-RECENT), then=1)
    rows = tasks.filter(stream_id=stream).exclude(finished_at=None).order_by("-finished_at")
    return rows.annotate(is_recent=Case(recent, default=0)).values_list("state", "is_recent")[:MOST_COUNTED]


def _status(
    row: Any, first: FirstTask | None, standbys: int, unfinished: Counter[Any], finished: Counter[Any]
) -> StreamStatus:
    is_led = bool(row.holder) and row.left > 0
    is_noted = row.elected_term == row.fence and row.began is not None
    return StreamStatus(
        name=row.name,
        leader=row.holder if is_led else "",
        term=row.fence,
        since=max(0.0, -row.began / 1_000_000) if is_led and is_noted else None,
        standbys=standbys,
        is_paused=row.is_paused,
        lanes=row.lanes,
        depth=unfinished.total(),
        first=first,
        blocked=unfinished[State.BLOCKED,],
        dead=finished[State.DEAD, 0] + finished[State.DEAD, 1],
        done=finished[State.DONE, 1],
        failed=finished[State.SKIPPED, 1] + finished[State.DEAD, 1],
        wrong=row.wrong_settings(),
    )


def _firsts(tasks: Any) -> dict[str, FirstTask]:
    columns = ("stream_id", "key", "type", "state", "outcome")
    moments = (MicrosUntil("submitted_at"), MicrosUntil("busy_before"), MicrosUntil("started_at"))
    return {stream: _first(*values) for stream, *values in tasks.values_list(*columns, *moments)}


def _first(key: str, kind: str, state: str, outcome: str, age: int, waits: int, began: int | None) -> FirstTask:
    return FirstTask(
        key,
        kind,
        state,
        outcome,
        age=-age / 1_000_000,
        waits=max(0.0, waits / 1_000_000) if state == State.READY else 0.0,
        runs=-began / 1_000_000 if state == State.RUNNING and began is not None else None,
    )


def _reasons(stream: StreamStatus) -> Iterator[str]:
    first = stream.first
    if stream.wrong:
        yield _("its settings are wrong: %s") % stream.wrong
    if first is None:
        return
    if not stream.leader:
        yield _("no consumer leads it; start one: `manage.py resourcepool_consume %s`") % stream.name
    if stream.is_paused:
        yield _("it is paused")
    if first.state == State.BLOCKED and stream.lanes == 1:
        told = {"key": first.key, "outcome": shown(first.outcome)}
        text = _("task %(key)s blocks it: %(outcome)s. Retry or discard it")
        yield (text if first.key else _("blocked by a task")) % told
    if first.waits:
        told = {"key": first.key, "time": duration(first.waits), "outcome": shown(first.outcome)}
        text = _("task %(key)s will be retried in %(time)s; last error: %(outcome)s")
        yield (text if first.key else _("a task will be retried in %(time)s")) % told


STREAMS = Places(
    Stream,
    _annotated,
    _read,
    {
        "no-consumer": StreamQuerySet.without_consumer,
        "blocked": StreamQuerySet.blocked,
        "paused": StreamQuerySet.paused,
        "busy": StreamQuerySet.busy,
    },
)
streams = STREAMS.named

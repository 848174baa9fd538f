"""The state of the streams: leader, waiting tasks, failures, and why nothing runs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Count, OuterRef, Subquery

from resourcepool.db.rows import count_groups
from resourcepool.elections.models import selector
from resourcepool.events import localized
from resourcepool.status.alarm import ABOUT_STREAMS, Alarm, AlarmKind, about_row, failed_work
from resourcepool.status.badge import IDLE, PAUSED, WORKING, Badge, Level, first_badge
from resourcepool.status.snapshots import Since, Until
from resourcepool.status.status_reader import ReasonsMixin, StatusReader, finished_states
from resourcepool.status.system import WORK, NamedSystem, Panel, RowList, count, counts, gauge, seconds, text
from resourcepool.status.times import duration
from resourcepool.taskqueue.models import Stream, StreamQuerySet, Task
from resourcepool.translation import gettext, gettext_lazy as _, gettext_noop
from resourcepool.waiting.models import Ticket

MAX_COUNTED = 10_000  # tasks; to count more would take too long
State = Task.State

INVALID = Badge(Level.BAD, "invalid", _("invalid settings"))
BLOCKED = Badge(Level.BAD, "blocked", _("blocked"))
PARTLY_BLOCKED = Badge(Level.BAD, "partly_blocked", _("partly blocked"))
NO_CONSUMER = Badge(Level.BAD, "no_consumer", _("no consumer"))
NO_HANDLER = Badge(Level.WARN, "no_handler", _("waiting for a handler"))
RETRYING = Badge(Level.WARN, "retrying", _("waiting for a retry"))


@dataclass(frozen=True, slots=True)
class FirstTask:
    """The task that is first in a stream; times in seconds.

    Attributes:
        key, type, outcome: "" for users without the permission to view tasks.
        waits: time until it may be tried again; 0: now.
        runs: how long it has been running; None: it is not running.
        pk: its primary key; None for users without that permission.
    """

    key: str
    type: str
    state: str
    outcome: str
    age: float
    waits: float
    runs: float | None
    pk: int | None = None

    @property
    def lacks_handler(self) -> bool:
        """Whether no consumer has a handler for its type."""
        is_due = self.state == State.READY and not self.waits
        return is_due and getattr(self.outcome, "code", "") == "no_handler"


@dataclass(frozen=True, slots=True)
class StreamStatus(ReasonsMixin):
    """The state of one stream; times in seconds; counts go up to ``MAX_COUNTED``.

    Attributes:
        leader: the process that runs its tasks; "": none. ``since``: for how long; None: no leader, or a new term.
        standbys: number of processes that wait to lead.
        depth: unfinished tasks. ``first``: the first of them; None: there is none.
        blocked, dead: unfinished tasks, and recently finished tasks, that wait for an operator.
        wrong: the settings with invalid values.
        done, failed: tasks that finished within the last minute.
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

    @property
    def badge(self) -> Badge:
        """See ``ReasonsMixin``; a blocked stream is blocked with or without a consumer."""
        first = self.first
        alone = first if self.lanes == 1 else None
        states = (
            (self.is_paused, PAUSED),
            (self.wrong, INVALID),
            (self.is_blocked, BLOCKED),
            (first and not self.leader, NO_CONSUMER),
            (self.blocked, PARTLY_BLOCKED),
            (alone and alone.waits, RETRYING),
            (alone and alone.lacks_handler, NO_HANDLER),
            (first, WORKING),
        )
        return first_badge(states, IDLE)

    def reasons(self) -> Iterator[str]:
        first = self.first
        if self.wrong:
            yield gettext("invalid settings: %s") % self.wrong
        if first is None:
            return
        if not self.leader:
            yield gettext("no consumer is leading; start one: `manage.py resourcepool_consume %s`") % self.name
        if self.is_paused:
            yield gettext("it is paused")
        values = {"key": first.key, "outcome": localized(first.outcome), "time": duration(first.waits)}
        if self.is_blocked:
            text = gettext("blocked by task %(key)s: %(outcome)s. Retry or discard the task")
            yield (text if first.key else gettext("blocked by a task")) % values
        if first.lacks_handler:
            yield gettext("task %(key)s waits for a consumer with a handler for its type: %(outcome)s") % values
        if first.waits:
            text = gettext("task %(key)s will be retried in %(time)s; last error: %(outcome)s")
            yield (text if first.key else gettext("a task will be retried in %(time)s")) % values

    @property
    def is_blocked(self) -> bool:
        """Whether the first task prevents all others from running."""
        return self.first is not None and self.first.state == State.BLOCKED and self.lanes == 1

    def redacted(self) -> "StreamStatus":
        """Return this status without key, type and error of the first task, for users who may not view tasks."""
        first = self.first and replace(self.first, key="", type="", outcome="", pk=None)
        return replace(self, first=first)


def stream_alarms(statuses: Sequence[StreamStatus], oldest: float) -> Iterator[Alarm]:
    """Yield the alarms of these streams; ``oldest``: the age in seconds from which the first task is late."""
    for one in statuses:
        about, row = ABOUT_STREAMS % one.name, about_row(Task, one.first and one.first.pk)
        yield from failed_work(AlarmKind.DEAD_TASKS, about, one.dead)
        if one.blocked and one.leader and not one.is_paused and not one.is_blocked:
            text = gettext("tasks that block their lanes: %d; retry or discard them.")
            yield Alarm(AlarmKind.BLOCKED, about, text % one.blocked)
        if one.first is None or one.is_paused:
            continue
        if not one.leader or one.is_blocked:
            kind = AlarmKind.BLOCKED if one.leader else AlarmKind.NO_CONSUMER
            row = row if one.is_blocked else about_row(Stream, one.name)
            yield Alarm(kind, about, gettext("%s.") % one.explanation, **row)
        elif one.first.age > oldest:
            values = {"key": one.first.key, "age": duration(one.first.age), "count": one.depth}
            text = gettext("the first task, %(key)s, is %(age)s old; unfinished: %(count)d.")
            if not one.first.key:
                text = gettext("the first task is %(age)s old; unfinished: %(count)d.")
            yield Alarm(AlarmKind.LATE_TASKS, about, f"{text % values} {one.explanation}".rstrip(), **row)


def _annotated(rows: Any) -> Any:
    first = Task.objects.unfinished_in_order().filter(stream_id=OuterRef("pk")).values("pk")[:1]
    return rows.annotate(first=Subquery(first), left=Until("busy_before"), led=Since("elected_at"))


def _read(connection: BaseDatabaseWrapper, rows: list[Any]) -> list[StreamStatus]:
    tasks = Task.objects.using(connection.alias)
    firsts = _firsts(tasks.unfinished().filter(pk__in=[row.first for row in rows if row.first is not None]))
    waiters = Ticket.objects.using(connection.alias).for_rows_of(Stream).waiting()
    waiting = dict(waiters.order_by().values_list("selector").annotate(Count("pk")))
    of_each = [tasks.filter(stream_id=row.pk) for row in rows]
    states = [some.unfinished_in_order().values_list("state")[:MAX_COUNTED] for some in of_each]
    unfinished = count_groups(connection, states, "state")
    finished = count_groups(
        connection, [finished_states(some)[:MAX_COUNTED] for some in of_each], "state", "is_recent"
    )
    return [
        _status(row, firsts.get(row.pk), waiting.get(selector(row.pk), 0), *counts)
        for row, *counts in zip(rows, unfinished, finished, strict=True)
    ]


def _status(
    row: Any, first: FirstTask | None, standbys: int, unfinished: Counter[Any], finished: Counter[Any]
) -> StreamStatus:
    is_led = bool(row.holder) and row.left > 0
    return StreamStatus(
        name=row.name,
        leader=row.holder if is_led else "",
        term=row.fence,
        since=row.led if is_led and row.elected_term == row.fence else None,
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
    columns = ("stream_id", "pk", "key", "type", "state", "outcome")
    moments = (Since("submitted_at"), Until("busy_before"), Since("started_at"))
    return {
        stream: FirstTask(
            *(key, kind, state, outcome, age),
            waits=max(0.0, waits) if state == State.READY else 0.0,
            runs=ran if state == State.RUNNING else None,
            pk=pk,
        )
        for stream, pk, key, kind, state, outcome, age, waits, ran in tasks.values_list(*columns, *moments)
    }


STREAMS = StatusReader(
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


UNFINISHED = RowList("unfinished", Task, {"status": "unfinished"})
DEAD = RowList("dead", Task, {"status": Task.State.DEAD.value})
FINISHED = (
    count(_("done/min"), "done", heading=""),
    count(_("failed/min"), "failed", heading=""),
    counts(lambda one: (one.done, one.failed), _("Done, failed per minute")),
)
SYSTEM = NamedSystem(
    details=(Task,),
    reader=STREAMS,
    figures=(
        text(_("stream"), "name"),
        text(_("leader"), "leader"),
        seconds(_("leading for"), "since"),
        count(_("standbys"), "standbys"),
        count(_("unfinished"), "depth", UNFINISHED, ("unfinished_tasks", "Unfinished tasks.")),
        seconds(
            _("oldest"),
            lambda one: one.first and one.first.age,
            gauge=("oldest_task_seconds", "Age of the first unfinished task."),
        ),
        *FINISHED,
        count(_("dead-letter"), "dead", DEAD),
        gauge("dead_tasks", "Failed tasks to retry or discard.", lambda one: one.dead + one.blocked),
        gauge("led", "Whether there is a leader.", lambda one: bool(one.leader)),
        gauge("standbys", "Standby consumers.", "standbys"),
    ),
    none_yet=gettext_noop("No streams yet; add one: `manage.py resourcepool_streams add NAME`"),
    alarms=lambda statuses, limits: stream_alarms(statuses, limits.oldest_task),
    section=WORK,
    subject=ABOUT_STREAMS,
    alarm_lists={
        AlarmKind.BLOCKED: RowList("blocked", Task, {"status": Task.State.BLOCKED.value}),
        AlarmKind.DEAD_TASKS: DEAD,
        None: UNFINISHED,
    },
    alarm_operations={
        AlarmKind.NO_CONSUMER: ("retry", "discard"),  # if it is blocked, too
        AlarmKind.BLOCKED: ("retry", "discard"),
        AlarmKind.DEAD_TASKS: ("retry", "discard"),
        AlarmKind.LATE_TASKS: ("discard",),
    },
    panel=Panel(_("Streams"), _("tasks in order"), order=20),
)

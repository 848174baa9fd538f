"""The state of the timers by topic: due and late timers, live nodes, and why nothing fires."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, OuterRef, Q, Subquery, When

from resourcepool.db.dialect import DbLater, DbNow, MicrosUntil, NullInOrder
from resourcepool.db.rows import count_groups, count_groups_since
from resourcepool.status.alarm import ABOUT_TIMERS, Alarm, AlarmKind, about_row, failed_work
from resourcepool.status.badge import IDLE, PAUSED, WORKING, Badge, Level, first_badge
from resourcepool.status.snapshots import Until, seconds_since
from resourcepool.status.status_reader import RECENT, ReasonsMixin, StatusReader, finished_states
from resourcepool.status.system import WORK, NamedSystem, Panel, RowList, count, gauge, seconds, text
from resourcepool.status.times import duration
from resourcepool.status.work.streams import FINISHED
from resourcepool.taskqueue.abstract import PausableQuerySet
from resourcepool.taskqueue.timers.models import LATE_AFTER, RESEND_AFTER, Timer, TimerNode, Topic
from resourcepool.translation import gettext, gettext_lazy as _, gettext_noop

MAX_NODES = 1_000
MAX_COUNTED = 10_000  # timers; to count more would take too long
MAX_NAMES = 5  # in a reason
BY_INDEX = (NullInOrder("finished_at"), "busy_before")
COLUMNS = ("state", "is_due", "has_fired", "is_handed")
State = Timer.State

NO_NODE = Badge(Level.BAD, "no_node", _("no node"))
UNCLAIMED = Badge(Level.BAD, "unclaimed", _("not claimed"))
LATE = Badge(Level.BAD, "late", _("late"))
WAITING = Badge(Level.IDLE, "waiting", _("nothing due"))


@dataclass(frozen=True, slots=True)
class FirstTimer:
    """The timer of a topic that fires next.

    Attributes:
        name, outcome: "" for users without the permission to view timers.
        due_in: seconds until it may begin; negative: since when it has been due.
        is_handed: whether it was handed over to another process, which has not claimed it yet.
        pk: its primary key; None for users without that permission.
    """

    name: str
    state: str
    outcome: str
    due_in: float
    is_handed: bool
    pk: int | None = None


@dataclass(frozen=True, slots=True)
class TopicStatus(ReasonsMixin):
    """The state of one topic; times in seconds; counts go up to ``MAX_COUNTED``.

    Attributes:
        pending: unfinished timers that are not running. ``due``: how many of them may begin now.
        first: the timer that fires next; None: there is none.
        running: timers whose handlers are running.
        dead: recently finished timers that wait for an operator.
        done, failed: timers that finished within the last minute; a recurring timer that has fired counts as done.
        nodes: the live nodes that may handle its timers.
        refused: if no live node may handle them, some nodes, each with the reason.
        handed: pending timers that were handed over (to Celery) and are not yet claimed.
        unclaimed: how long the first of these has waited; 0: there is none.
    """

    name: str
    is_paused: bool
    pending: int
    due: int
    first: FirstTimer | None
    running: int
    dead: int
    done: int
    failed: int
    nodes: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]
    handed: int
    unclaimed: float

    ALSO = ("late", "next_in", "status", "explanation")

    @property
    def late(self) -> float:
        """How long the first timer has been due; 0: none is due."""
        return max(0.0, -self.first.due_in) if self.first else 0.0

    @property
    def next_in(self) -> float | None:
        """The time until the next timer is due; None: it is due or handed over, or there is none."""
        return self.first.due_in if self.first and self.first.due_in > 0 and not self.first.is_handed else None

    @property
    def badge(self) -> Badge:
        states = (
            (self.is_paused, PAUSED),
            (self.first and not self.nodes, NO_NODE),
            (self.unclaimed > RESEND_AFTER, UNCLAIMED),
            (self.late > LATE_AFTER, LATE),
            (self.due or self.running or self.done, WORKING),
            (self.first, WAITING),
        )
        return first_badge(states, IDLE)

    def reasons(self) -> Iterator[str]:
        if self.first is None:
            return
        if self.is_paused:
            yield gettext("it is paused")
        if self.unclaimed > RESEND_AFTER:
            yield self.unclaimed_text
        if self.nodes:
            return
        if self.refused:
            some = "; ".join(f"{name}: {why}" for name, why in self.refused[:MAX_NAMES])
            more = " .." if len(self.refused) > MAX_NAMES else ""
            yield gettext("no live node handles it (%s)") % f"{some}{more}"
        else:
            yield gettext("no live node handles it; start one: `manage.py resourcepool_timers`")

    @property
    def unclaimed_text(self) -> str:
        """The sentence about timers that were handed over but not claimed."""
        values = {"count": self.handed, "time": duration(self.unclaimed)}
        return (
            gettext("no Celery worker claims the timers handed over (%(count)d, the first for %(time)s)")
            % values
        )

    def redacted(self) -> "TopicStatus":
        """Return this status without name and error of the first timer, for users who may not view timers."""
        return replace(self, first=self.first and replace(self.first, name="", outcome="", pk=None))


def timer_alarms(statuses: Sequence[TopicStatus], late: float) -> Iterator[Alarm]:
    """Yield the alarms of these topics; ``late``: how many seconds a timer may be due."""
    for one in statuses:
        about = ABOUT_TIMERS % one.name
        yield from failed_work(AlarmKind.DEAD_TIMERS, about, one.dead)
        if one.is_paused or one.first is None:
            continue
        if one.unclaimed > late:
            yield Alarm(AlarmKind.UNCLAIMED_TIMERS, about, gettext("%s.") % one.unclaimed_text)
        if not one.due:
            continue
        if not one.nodes:
            yield Alarm(
                AlarmKind.NO_NODE, about, gettext("%s.") % one.explanation, **about_row(Topic, one.name)
            )
        elif one.late > late:
            values = {"name": one.first.name, "late": duration(one.late), "count": one.due}
            text = gettext("timer %(name)s is %(late)s late; due: %(count)d.")
            if not one.first.name:
                text = gettext("the first timer is %(late)s late; due: %(count)d.")
            yield Alarm(AlarmKind.LATE_TIMERS, about, text % values, **about_row(Timer, one.first.pk))


def _annotated(rows: Any) -> Any:
    to_begin = Timer.objects.unfinished().filter(Q(state=State.PENDING) | Q(busy_before__lte=DbNow()))
    first = to_begin.order_by(*BY_INDEX).filter(topic_id=OuterRef("pk")).values("pk")[:1]
    return rows.annotate(first=Subquery(first))


def _read(connection: BaseDatabaseWrapper, rows: list[Any]) -> list[TopicStatus]:
    timers = Timer.objects.using(connection.alias)
    firsts = _firsts(timers.filter(pk__in=[row.first for row in rows if row.first is not None]))
    of_each = [timers.filter(topic_id=row.pk) for row in rows]
    unfinished = count_groups_since(
        connection, [_unfinished(some) for some in of_each], *COLUMNS, since="since"
    )
    finished = count_groups(
        connection, [finished_states(some)[:MAX_COUNTED] for some in of_each], "state", "is_recent"
    )
    live = TimerNode.objects.using(connection.alias).filter(busy_before__gt=DbNow())
    nodes = list(live.order_by("pk")[:MAX_NODES])
    return [
        _status(row, firsts.get(row.pk), nodes, left, over)
        for row, left, over in zip(rows, unfinished, finished, strict=True)
    ]


def _unfinished(timers: Any) -> Any:
    waits = Q(state=State.PENDING, holder="", failures=0)
    annotated = timers.unfinished().annotate(
        is_due=_as_number(Q(busy_before__lte=DbNow())),
        has_fired=_as_number(waits & ~Q(schedule="") & Q(started_at__gt=DbLater(-RECENT))),
        is_handed=_as_number(Q(state=State.PENDING) & ~Q(holder="")),
        since=MicrosUntil("started_at"),
    )
    return annotated.order_by(*BY_INDEX).values_list(*COLUMNS, "since")[:MAX_COUNTED]


def _as_number(condition: Q) -> Case:
    return Case(When(condition, then=1), default=0)


def _firsts(timers: Any) -> dict[str, FirstTimer]:
    columns = timers.values_list("topic_id", "pk", "name", "state", "outcome", Until("busy_before"), "holder")
    return {
        topic: FirstTimer(name, state, outcome, due_in, state == State.PENDING and holder != "", pk)
        for topic, pk, name, state, outcome, due_in, holder in columns
    }


def _status(
    row: Any,
    first: FirstTimer | None,
    nodes: Sequence[Any],
    unfinished: dict[tuple[Any, ...], tuple[int, Any]],
    finished: Counter[Any],
) -> TopicStatus:
    able = tuple(
        node.name for node in nodes if row.name in node.topics and not row.refusal(node.labels, node.version)
    )
    refused = [] if able else [(node.name, row.refusal(node.labels, node.version)) for node in nodes]
    others = sorted(refused, key=lambda one: not one[1])
    numbers, waits = Counter[str](), [0.0]
    for (state, is_due, has_fired, is_handed), (number, since) in unfinished.items():
        is_running = state == State.RUNNING and not is_due
        numbers["running" if is_running else "pending"] += number
        numbers.update({"due": number * is_due, "fired": number * has_fired, "handed": number * is_handed})
        if is_handed:
            waits.append(seconds_since(since) or 0.0)
    return TopicStatus(
        name=row.name,
        is_paused=row.is_paused,
        pending=numbers["pending"],
        due=numbers["due"],
        first=first,
        running=numbers["running"],
        dead=finished[State.DEAD, 0] + finished[State.DEAD, 1],
        done=finished[State.DONE, 1] + numbers["fired"],
        failed=finished[State.DEAD, 1],
        nodes=able,
        refused=tuple((name, why or gettext("has no handler for it")) for name, why in others[: MAX_NAMES + 1]),
        handed=numbers["handed"],
        unclaimed=max(waits),
    )


TOPICS = StatusReader(Topic, _annotated, _read, {"paused": PausableQuerySet.paused})
topics = TOPICS.named


UNFINISHED, DUE = (RowList(name, Timer, {"status": name}) for name in ("unfinished", "due"))
DEAD = RowList("dead", Timer, {"status": Timer.State.DEAD.value})
SYSTEM = NamedSystem(
    details=(Timer,),
    reader=TOPICS,
    figures=(
        text(_("topic"), "name"),
        count(_("nodes"), lambda one: len(one.nodes), RowList("nodes", TimerNode, None)),
        count(_("pending"), "pending", UNFINISHED, ("pending_timers", "Timers that do not run yet.")),
        seconds(_("next in"), "next_in"),
        count(_("due"), "due", DUE, ("due_timers", "Timers that are due.")),
        seconds(_("late by"), lambda one: one.late or None),
        gauge("late_seconds", "Time for which the first timer has been due.", "late"),
        count(_("running"), "running", gauge=("running_timers", "Running timers.")),
        *FINISHED,
        count(_("dead-letter"), "dead", DEAD, ("dead_timers", "Failed timers to retry or discard.")),
        gauge("nodes", "Live timer nodes of the topic.", lambda one: len(one.nodes)),
    ),
    none_yet=gettext_noop("No timers or topics yet: the first timer creates its topic."),
    alarms=lambda statuses, limits: timer_alarms(statuses, limits.late_timer),
    section=WORK,
    subject=ABOUT_TIMERS,
    alarm_lists={
        AlarmKind.UNCLAIMED_TIMERS: RowList("handed", Timer, {"status": "handed"}),
        AlarmKind.DEAD_TIMERS: DEAD,
        None: DUE,
    },
    alarm_operations={
        AlarmKind.DEAD_TIMERS: ("retry", "discard"),
        AlarmKind.NO_NODE: ("pause",),
        AlarmKind.LATE_TIMERS: ("cancel",),
    },
    panel=Panel(_("Timers"), _("one-time and recurring"), order=50),
)

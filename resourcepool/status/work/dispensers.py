"""The state of the dispensers: waiting and assigned tasks, failures, and why nothing is handed out."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, When

from resourcepool.db.dialect import DbLater, DbNow, MicrosUntil
from resourcepool.db.rows import count_and_min, count_groups
from resourcepool.status.alarm import ABOUT_DISPENSERS, Alarm, AlarmKind, about_row, failed_work
from resourcepool.status.badge import IDLE, PAUSED, WORKING, Badge, Level, first_badge
from resourcepool.status.snapshots import Since, seconds_since
from resourcepool.status.status_reader import RECENT, ReasonsMixin, StatusReader
from resourcepool.status.system import (
    WORK,
    NamedSystem,
    Panel,
    RowList,
    age,
    count,
    counts,
    gauge,
    seconds,
    text,
)
from resourcepool.status.times import duration
from resourcepool.taskqueue.abstract import PausableQuerySet
from resourcepool.taskqueue.dispenser.models import Bucket, Dispenser, DispenserTask
from resourcepool.translation import gettext, gettext_lazy as _, gettext_noop

MAX_COUNTED = 10_000  # tasks, or buckets; to count more would take too long
State = DispenserTask.State

NO_WORKER = Badge(Level.BAD, "no_worker", _("no worker"))
ALL_ASSIGNED = Badge(Level.BUSY, "all_assigned", _("all assigned"))
ONLY_FAILED = Badge(Level.BAD, "only_failed", _("only failed tasks"))


@dataclass(frozen=True, slots=True)
class DispenserStatus(ReasonsMixin):
    """The state of one dispenser; times in seconds; counts go up to ``MAX_COUNTED``.

    Attributes:
        depth: ready tasks. ``oldest``: the age of the oldest of the next ones; None: none.
        quiet: time since a task was last handed out or done, as far as the existing tasks show; None: unknown.
        live: live buckets. ``expired``: buckets whose tasks return when the next worker asks for tasks.
        assigned: tasks in buckets.
        failed: tasks that wait for an operator.
        done: tasks finished within the last minute.
        rebuilt: time since the last rebuild; None: there was none.
    """

    name: str
    is_paused: bool
    depth: int
    oldest: float | None
    quiet: float | None
    live: int
    expired: int
    assigned: int
    failed: int
    done: int
    rebuilt: float | None

    @property
    def badge(self) -> Badge:
        states = (
            (self.is_paused, PAUSED),
            ((self.depth or self.assigned) and not self.live, NO_WORKER),
            (self.depth, WORKING),
            (self.assigned, ALL_ASSIGNED),
            (self.failed, ONLY_FAILED),
        )
        return first_badge(states, IDLE)

    def reasons(self) -> Iterator[str]:
        if self.is_paused:
            yield gettext("it is paused")
        if self.depth:
            if not self.live:
                yield gettext("no worker has a bucket")
            return
        if self.assigned and self.expired:
            yield gettext(
                "all tasks are assigned; tasks in expired buckets return when the next worker asks for tasks"
            )
        elif self.assigned:
            yield gettext("all tasks are assigned")
        elif not self.failed:
            yield gettext("it has no unfinished tasks")
        if self.failed:
            yield gettext("failed tasks to retry or discard: %d") % self.failed


def dispenser_alarms(statuses: Sequence[DispenserStatus], oldest: float) -> Iterator[Alarm]:
    """Yield the alarms of these dispensers.

    Args:
        oldest: how many seconds a task may be ready while nothing is handed out. There is no alarm while other tasks
            are handed out: the score of this one allows it to wait.
    """
    for one in statuses:
        about, row = ABOUT_DISPENSERS % one.name, about_row(Dispenser, one.name)
        yield from failed_work(AlarmKind.FAILED_TASKS, about, one.failed)
        if one.is_paused:
            continue
        if one.oldest is None:
            # The worker of a live bucket reclaims expired ones when it asks for more tasks.
            quiet = one.quiet or 0.0
            if one.assigned and one.expired and not one.live and quiet > oldest:
                text = gettext("no task has been handed out for %(age)s (%(reason)s).")
                text %= {"age": duration(quiet), "reason": one.explanation}
                yield Alarm(AlarmKind.LATE_TASKS, about, text, **row)
            continue
        idle = one.oldest if one.quiet is None else min(one.oldest, one.quiet)
        if idle > oldest:
            text = gettext("no task has been handed out for %(age)s; ready: %(count)d.")
            if one.explanation:
                text = gettext("no task has been handed out for %(age)s (%(reason)s); ready: %(count)d.")
            values = {"age": duration(idle), "count": one.depth, "reason": one.explanation}
            yield Alarm(AlarmKind.LATE_TASKS, about, text % values, **row)


def _read(connection: BaseDatabaseWrapper, rows: list[Any]) -> list[DispenserStatus]:
    def of_each(tasks: Any, column: str, most: int = MAX_COUNTED) -> list[Any]:
        return [tasks.filter(dispenser_id=row.pk).values_list(column)[:most] for row in rows]

    tasks, buckets = DispenserTask.objects.using(connection.alias), Bucket.objects.using(connection.alias)
    ready = tasks.filter(state=State.READY).in_order().annotate(micros=MicrosUntil("added_at"))
    assigned = tasks.filter(state=State.ASSIGNED).annotate(micros=-MicrosUntil("assigned_at"))
    done, failed = tasks.filter(state=State.DONE), tasks.filter(state=State.FAILED)
    last = done.exclude(finished_at=None).order_by("-finished_at").annotate(micros=-MicrosUntil("finished_at"))
    recent = done.filter(finished_at__gt=DbLater(-RECENT))
    are_live = buckets.annotate(is_live=Case(When(busy_before__gt=DbNow(), then=1), default=0))
    n = len(rows)
    waiting = count_and_min(connection, of_each(ready, "micros"), "micros")
    held = count_groups(connection, of_each(are_live, "is_live"), "is_live")
    since = count_and_min(connection, [*of_each(assigned, "micros"), *of_each(last, "micros", 1)], "micros")
    ended = count_groups(connection, [*of_each(failed, "state"), *of_each(recent, "state")], "state")
    by_row = zip(rows, waiting, held, since[:n], since[n:], ended[:n], ended[n:], strict=True)
    return [_status(*columns) for columns in by_row]


def _status(
    row: Any,
    ready: tuple[int, Any],
    buckets: Counter[Any],
    assigned: tuple[int, Any],
    last: tuple[int, Any],
    failed: Counter[Any],
    done: Counter[Any],
) -> DispenserStatus:
    last_acts = [-since for _count, since in (assigned, last) if since is not None]
    return DispenserStatus(
        name=row.name,
        is_paused=row.is_paused,
        depth=ready[0],
        oldest=seconds_since(ready[1]),
        quiet=seconds_since(max(last_acts, default=None)),
        live=buckets[1,],
        expired=buckets[0,],
        assigned=assigned[0],
        failed=failed.total(),
        done=done.total(),
        rebuilt=row.rebuilt,
    )


DISPENSERS = StatusReader(
    Dispenser,
    lambda rows: rows.annotate(rebuilt=Since("rebuilt_at")),
    _read,
    {"paused": PausableQuerySet.paused},
)
dispensers = DISPENSERS.named


TASKS = DispenserTask.State
READY, ASSIGNED, FAILED = (
    RowList(state.value, DispenserTask, {"state": state.value})
    for state in (TASKS.READY, TASKS.ASSIGNED, TASKS.FAILED)
)
SYSTEM = NamedSystem(
    details=(DispenserTask,),
    reader=DISPENSERS,
    figures=(
        text(_("dispenser"), "name"),
        count(_("ready"), "depth", READY, ("ready_tasks", "Tasks ready to be handed out.")),
        seconds(_("oldest"), "oldest", gauge=("oldest_task_seconds", "Age of the oldest of the next tasks.")),
        count(_("assigned"), "assigned", ASSIGNED, ("assigned_tasks", "Tasks in buckets.")),
        counts(lambda one: (one.live, one.expired), _("Buckets live, expired"), RowList("buckets", Bucket, {})),
        count(_("buckets"), "live", heading=""),
        count(_("expired"), "expired", heading=""),
        count(_("done/min"), "done", heading=_("Done per minute")),
        count(_("failed"), "failed", FAILED, ("failed_tasks", "Failed tasks to retry or discard.")),
        gauge("buckets", "Buckets of workers.", "live"),
        age(_("last rebuild"), "rebuilt"),
    ),
    none_yet=gettext_noop("No dispensers yet: a dispenser is created on first use."),
    alarms=lambda statuses, limits: dispenser_alarms(statuses, limits.oldest_task),
    section=WORK,
    subject=ABOUT_DISPENSERS,
    alarm_lists={AlarmKind.FAILED_TASKS: FAILED, None: READY},
    alarm_operations={AlarmKind.FAILED_TASKS: ("retry", "discard"), AlarmKind.LATE_TASKS: ("pause",)},
    panel=Panel(_("Dispensers"), _("tasks in buckets"), order=30),
)

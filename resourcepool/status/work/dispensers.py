"""The state of the dispensers: waiting and assigned tasks, failures, and why nothing is handed out."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, When
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from resourcepool.database.group_counts import count_and_min, count_groups
from resourcepool.dialect import DbLater, DbNow, MicrosUntil
from resourcepool.status.alarm import ABOUT_DISPENSERS, Alarm, AlarmKind
from resourcepool.status.snapshots import Since, ago, duration
from resourcepool.status.work.status_reader import RECENT, ReasonsMixin, StatusReader
from resourcepool.taskqueue.abstract import PausableQuerySet
from resourcepool.taskqueue.dispenser.models import Bucket, Dispenser, DispenserTask

MAX_COUNTED = 10_000  # tasks, or buckets; counting more would take too long
State = DispenserTask.State


@dataclass(frozen=True, slots=True)
class DispenserStatus(ReasonsMixin):
    """The state of one dispenser; times in seconds; counts go up to ``MAX_COUNTED``.

    Attributes:
        depth: tasks that are ready to be handed out. ``oldest``: the age of the oldest of the next ones; None: none.
        quiet: since a task was last handed out or done, as far as its tasks tell; None: unknown.
        live: buckets that workers have. ``expired``: buckets whose tasks return when the next worker asks.
        assigned: tasks in buckets.
        failed: tasks that wait for an operator.
        done: how many were finished within the last minute.
        rebuilt: since the last rebuild; None: there was none.
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

    def reasons(self) -> Iterator[str]:
        """See ``ReasonsMixin``."""
        if self.is_paused:
            yield _("it is paused")
        if self.depth:
            if not self.live:
                yield _("no worker has a bucket")
            return
        if self.assigned and self.expired:
            yield _("all tasks are assigned; those in expired buckets return when the next worker asks")
        elif self.assigned:
            yield _("all tasks are assigned")
        elif not self.failed:
            yield _("it has no unfinished tasks")
        if self.failed:
            text = ngettext(
                "%(count)d task has failed, and is to be retried or discarded",
                "%(count)d tasks have failed, and are to be retried or discarded",
                self.failed,
            )
            yield text % {"count": self.failed}

    def redacted(self) -> "DispenserStatus":
        """Return it: it names no task."""
        return self


def dispenser_alarms(found: Sequence[DispenserStatus], oldest: float) -> Iterator[Alarm]:
    """Yield the alarms of these dispensers.

    Args:
        oldest: for how many seconds a task may be ready while nothing is handed out. If other tasks are handed out
            before it, there is no alarm: its score says that it can wait.
    """
    for one in found:
        about = ABOUT_DISPENSERS % one.name
        if one.failed:
            text = ngettext(
                "%(count)d task has failed. Retry or discard it.",
                "%(count)d tasks have failed. Retry or discard them.",
                one.failed,
            )
            yield Alarm(AlarmKind.FAILED_TASKS, about, text % {"count": one.failed})
        if one.is_paused:
            continue
        if one.oldest is None:
            # With a live bucket there is a worker that takes the others back when it asks for more.
            quiet = one.quiet or 0.0
            if one.assigned and one.expired and not one.live and quiet > oldest:
                text = _("nothing has been handed out for %(age)s (%(because)s).")
                yield Alarm(
                    AlarmKind.LATE_TASKS, about, text % {"age": duration(quiet), "because": one.explanation}
                )
            continue
        idle = one.oldest if one.quiet is None else min(one.oldest, one.quiet)
        if idle > oldest:
            text = _("nothing has been handed out for %(age)s; ready: %(count)d.")
            if one.explanation:
                text = _("nothing has been handed out for %(age)s (%(because)s); ready: %(count)d.")
            told = {"age": duration(idle), "count": one.depth, "because": one.explanation}
            yield Alarm(AlarmKind.LATE_TASKS, about, text % told)


def _read(connection: BaseDatabaseWrapper, rows: list[Any]) -> list[DispenserStatus]:
    def of_each(found: Any, column: str, most: int = MAX_COUNTED) -> list[Any]:
        return [found.filter(dispenser_id=row.pk).values_list(column)[:most] for row in rows]

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
    return [_status(*one) for one in by_row]


def _status(
    row: Any,
    ready: tuple[int, Any],
    buckets: Counter[Any],
    assigned: tuple[int, Any],
    last: tuple[int, Any],
    failed: Counter[Any],
    done: Counter[Any],
) -> DispenserStatus:
    signs = [-since for _count, since in (assigned, last) if since is not None]
    return DispenserStatus(
        name=row.name,
        is_paused=row.is_paused,
        depth=ready[0],
        oldest=ago(ready[1]),
        quiet=ago(max(signs, default=None)),
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

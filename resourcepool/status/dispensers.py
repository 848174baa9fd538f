"""How the dispensers stand: what waits, who has what, what went wrong, and why nothing is handed out."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, When
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from resourcepool.database.tallies import least, tallies
from resourcepool.dialect import DbLater, DbNow, MicrosUntil
from resourcepool.events import joined, shown
from resourcepool.status.alarm import ABOUT_DISPENSERS, Alarm, Kind
from resourcepool.status.durations import duration
from resourcepool.status.work.places import Places
from resourcepool.taskqueue.abstract import PausableQuerySet
from resourcepool.taskqueue.dispenser.models import Bucket, Dispenser, DispenserTask

MOST_COUNTED = 10_000  # tasks, or buckets; more would keep the database busy for too long
RECENT = 60.0  # seconds
State = DispenserTask.State


@dataclass(frozen=True, slots=True)
class DispenserStatus:
    """How one dispenser stands; times in seconds; every count goes up to ``MOST_COUNTED``.

    Attributes:
        depth: tasks that are ready to be handed out.
        oldest: for how long the one of them that was added first has been there, among those that are next; None:
            there is none.
        quiet: since a task was last handed out or done, as far as its tasks tell; None: they do not.
        live: buckets that workers have; ``expired``: those whose tasks are taken back when the next worker asks.
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

    ALSO: ClassVar = ("because",)

    @property
    def because(self) -> str:
        """Why nothing is handed out, all reasons in one sentence; "": there are tasks, and workers that take them."""
        return shown(joined([*_reasons(self)]))

    def discreet(self) -> "DispenserStatus":
        """Return what somebody may know of it who may not see tasks: all, for it names none."""
        return self


def of_dispensers(found: Sequence[DispenserStatus], oldest: float) -> Iterator[Alarm]:
    """Yield what is wrong with these.

    Args:
        oldest: for how many seconds a task may be ready while nothing is handed out. Workers that take others before it
            are no reason for an alarm: its score says that it can wait.
    """
    for one in found:
        about = f"{ABOUT_DISPENSERS}{one.name}"
        if one.failed:
            text = ngettext(
                "%(count)d task has failed. Retry or discard it.",
                "%(count)d tasks have failed. Retry or discard them.",
                one.failed,
            )
            yield Alarm(Kind.FAILED_TASKS, about, text % {"count": one.failed})
        idle = min(math.inf if since is None else since for since in (one.oldest, one.quiet))
        if one.oldest is not None and idle > oldest and not one.is_paused:
            text = _("nothing has been handed out for %(age)s; ready: %(count)d.")
            if one.because:
                text = _("nothing has been handed out for %(age)s (%(because)s); ready: %(count)d.")
            told = {"age": duration(idle), "count": one.depth, "because": one.because}
            yield Alarm(Kind.LATE_TASKS, about, text % told)


def _annotated(rows: Any) -> Any:
    return rows.annotate(built=MicrosUntil("rebuilt_at"))


def _read(connection: BaseDatabaseWrapper, rows: list[Any]) -> list[DispenserStatus]:
    using = connection.alias
    keys = [row.pk for row in rows]
    ready = least(connection, [_ready(using, key) for key in keys], "waits")
    buckets = tallies(connection, [_buckets(using, key) for key in keys], "is_live")
    signs = least(
        connection, [one for key in keys for one in (_assigned(using, key), _last(using, key))], "since"
    )
    ended = tallies(
        connection, [one for key in keys for one in (_failed(using, key), _done(using, key))], "state"
    )
    by_row = zip(rows, ready, buckets, signs[::2], signs[1::2], ended[::2], ended[1::2], strict=True)
    return [_status(*one) for one in by_row]


def _ready(using: str, dispenser: str) -> Any:
    rows = _tasks(using, dispenser).filter(state=State.READY).in_order()
    return rows.annotate(waits=MicrosUntil("added_at")).values_list("waits")[:MOST_COUNTED]


def _buckets(using: str, dispenser: str) -> Any:
    rows = Bucket.objects.using(using).filter(dispenser_id=dispenser)
    is_live = Case(When(busy_before__gt=DbNow(), then=1), default=0)
    return rows.annotate(is_live=is_live).values_list("is_live")[:MOST_COUNTED]


def _assigned(using: str, dispenser: str) -> Any:
    rows = _tasks(using, dispenser).filter(state=State.ASSIGNED)
    return rows.annotate(since=-MicrosUntil("assigned_at")).values_list("since")[:MOST_COUNTED]


def _last(using: str, dispenser: str) -> Any:
    rows = _tasks(using, dispenser).filter(state=State.DONE).exclude(finished_at=None).order_by("-finished_at")
    return rows.annotate(since=-MicrosUntil("finished_at")).values_list("since")[:1]


def _failed(using: str, dispenser: str) -> Any:
    return _tasks(using, dispenser).filter(state=State.FAILED).values_list("state")[:MOST_COUNTED]


def _done(using: str, dispenser: str) -> Any:
    recent = _tasks(using, dispenser).filter(finished_at__gt=DbLater(-RECENT))
    return recent.filter(state=State.DONE).values_list("state")[:MOST_COUNTED]


def _tasks(using: str, dispenser: str) -> Any:
    return DispenserTask.objects.using(using).filter(dispenser_id=dispenser)


def _status(
    row: Any,
    ready: tuple[int, Any],
    buckets: Counter[Any],
    assigned: tuple[int, Any],
    last: tuple[int, Any],
    failed: Counter[Any],
    done: Counter[Any],
) -> DispenserStatus:
    depth, waits = ready
    signs = [int(since) / 1_000_000 for _count, since in (assigned, last) if since is not None]
    return DispenserStatus(
        name=row.name,
        is_paused=row.is_paused,
        depth=depth,
        oldest=None if waits is None else max(0.0, -int(waits) / 1_000_000),
        quiet=max(0.0, min(signs)) if signs else None,
        live=buckets[1,],
        expired=buckets[0,],
        assigned=assigned[0],
        failed=failed.total(),
        done=done.total(),
        rebuilt=None if row.built is None else max(0.0, -row.built / 1_000_000),
    )


def _reasons(one: DispenserStatus) -> Iterator[str]:
    if one.is_paused:
        yield _("it is paused")
    if one.depth:
        if not one.live:
            yield _("no worker has a bucket")
        return
    if one.assigned and one.expired:
        yield _("all tasks are assigned; those in expired buckets return when the next worker asks")
    elif one.assigned:
        yield _("all tasks are assigned")
    elif not one.failed:
        yield _("it has no unfinished tasks")
    if one.failed:
        text = ngettext(
            "%(count)d task has failed, and is to be retried or discarded",
            "%(count)d tasks have failed, and are to be retried or discarded",
            one.failed,
        )
        yield text % {"count": one.failed}


DISPENSERS = Places(Dispenser, _annotated, _read, {"paused": PausableQuerySet.paused})
dispensers = DISPENSERS.named

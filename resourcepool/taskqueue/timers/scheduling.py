"""Scheduling of timers: each call is one short transaction, or part of the caller's transaction."""

import datetime
import enum
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

from django.db import connections, router
from django.db.models import F, Q

from resourcepool import options
from resourcepool.db.dialect import DbNow, aware, for_project, from_columns, in_columns, read_clock
from resourcepool.db.retry import Unsettled, retrying
from resourcepool.db.rows import insert_unless_exists
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption, DatabaseUnavailable, Hidden
from resourcepool.options import Seconds
from resourcepool.taskqueue.abstract import MAX_NAMES
from resourcepool.taskqueue.timers import nodes, occurrences
from resourcepool.taskqueue.timers.models import MAX_TOPIC, Timer, Topic
from resourcepool.translation import gettext_noop as _

State = Timer.State
CatchUp = Literal["once", "all", "skip"]
IfExists = Literal["replace", "keep", "error"]
MAX_AHEAD = 36_500 * options.DAY  # seconds
SOON = datetime.timedelta(seconds=1.5)  # nodes read later timers in time without a hint
MAX_TRIES = 5  # while other processes change the row
CHANGED = f"was changed by other processes {MAX_TRIES} times meanwhile"
COLUMNS = ("pk", "topic_id", "fence", "state", "finished_at", "schedule", "scheduled_at")


class Scheduled(NamedTuple):
    """A scheduled timer; ``is_new``: False if an unfinished timer of this name existed already."""

    name: str
    topic: str
    due_at: datetime.datetime
    is_new: bool


class Outcome(enum.StrEnum):
    CANCELLED = "cancelled"  # the timer does not fire, or not again
    RESCHEDULED = "rescheduled"
    RUNNING = "running"  # too late: its handler is running
    FIRED = "fired"  # too late: it has finished
    UNKNOWN = "unknown"  # no timer has this name


_Changes = Callable[[str, datetime.datetime], dict[str, Any]]  # the arguments: database alias, its current time


class _When(NamedTuple):
    """When a timer first fires: at ``at``, or ``after`` seconds, or else at the first time of its ``schedule``."""

    after: float | None
    at: datetime.datetime | None
    schedule: occurrences.Schedule | None

    @property
    def text(self) -> str:
        """The schedule as stored; "": it fires once."""
        return "" if self.schedule is None else self.schedule.text()

    def due_at(self, now: datetime.datetime) -> datetime.datetime:
        if self.at is not None:
            return self.at
        if self.after is not None:
            return now + datetime.timedelta(seconds=self.after)
        first = None if self.schedule is None else self.schedule.after(now)
        if first is None:
            raise BadOption("cron", self.schedule, because=Sentence(occurrences.NEVER))
        return first


def schedule(
    name: str,
    *,
    topic: str,
    after: Seconds | None = None,
    at: datetime.datetime | None = None,
    every: Seconds | None = None,
    cron: str | None = None,
    start: datetime.datetime | None = None,
    tz: str = "UTC",
    payload: Mapping[str, Any] | None = None,
    catch_up: CatchUp = "once",
    if_exists: IfExists = "replace",
) -> Scheduled:
    """Schedule a timer. Inside a transaction of the caller it is scheduled when that commits.

        timers.schedule("order-42-unpaid", after=timedelta(minutes=30), topic="order.timeout", payload={"order": 42})

    Give exactly one of ``after``, ``at``, ``every`` and ``cron``. All times are by the database clock.

    Args:
        name: unique in its topic among unfinished timers; up to 200 characters.
        topic: selects the handler; see ``on``.
        after: seconds or timedelta from now.
        at: a datetime; a time in the past fires at once.
        every: seconds (1 at least) or timedelta: a recurring timer, which first fires after one interval.
        cron: five fields, as in a crontab, in the time zone ``tz``: "30 2 * * 1-5"; or "@hourly", "@daily", "@weekly",
            "@monthly", "@yearly".
        start: only with ``every``: when the timer first fires.
        payload: the argument of the handler; a JSON object of at most 64 KiB.
        catch_up: for occurrences that a recurring timer missed while no node was alive: fire "once" for all of them,
            fire "all", or "skip" them.
        if_exists: if an unfinished timer of this name exists: "replace" it (a running handler loses it), "keep" it, or
            "error".

    Raises:
        BadOption: a value is not allowed, or the name is in use and ``if_exists`` is "error".
        DatabaseUnavailable: it is unknown whether the timer was scheduled; call it again.
    """
    when = _when(after, at, every, cron, tz, start)
    name, topic = options.name("name", name), options.name("topic", topic, most=MAX_TOPIC)
    mode = options.one_of("if_exists", if_exists, get_args(IfExists))
    content = options.json_object("payload", {} if payload is None else payload)
    catches_up = options.one_of("catch_up", catch_up, get_args(CatchUp))
    values = {"payload": content, "catch_up": catches_up, "schedule": when.text}
    using = router.db_for_write(Timer)
    tried: dict[datetime.datetime, bool] = {}  # times of the tries, and whether they wrote a new row
    is_soon = False

    def send() -> Scheduled:
        nonlocal is_soon
        now = _now(using, topic)
        due_at = when.due_at(now)
        is_soon = due_at - now < SOON
        times = {**Timer.restart_values(using, due_at), "scheduled_at": in_columns(now, connections[using])}
        result = Scheduled(name, topic, for_project(due_at), True)
        return _put(using, result, {**values, **times}, mode, now, tried)

    def settle() -> Scheduled:
        if is_soon and not Timer.leaves_a_row(using, topic, name):
            raise DatabaseUnavailable(f"timer {topic}/{name} may have been scheduled and have fired since")
        raise Unsettled

    scheduled = retrying(connections[using], send, settle=settle)
    if is_soon:
        nodes.notify_after_commit(using, topic)
    return scheduled


def cancel(name: str, *, topic: str | None = None) -> Outcome:
    """Cancel a timer. Either ``cancel`` or the handler wins, never both; the result says which.

    A recurring timer whose handler is running does not fire again. Inside a transaction of the caller the cancellation
    takes effect when that commits, and no handler begins until then.

    Args:
        topic: None: the only topic that has a timer of this name.

    Returns:
        CANCELLED, RUNNING (its handler is running), FIRED (it had finished), or UNKNOWN.

    Raises:
        BadOption: several topics have a timer of this name.
        DatabaseUnavailable: it is unknown whether the timer was cancelled; call it again.
    """
    ended = {"state": State.CANCELLED, "finished_at": DbNow(), **Timer.unassigned_values()}
    return _change(name, topic, Outcome.CANCELLED, lambda _using, _now: ended)


def reschedule(
    name: str,
    *,
    topic: str | None = None,
    after: Seconds | None = None,
    at: datetime.datetime | None = None,
    every: Seconds | None = None,
    cron: str | None = None,
    start: datetime.datetime | None = None,
    tz: str = "UTC",
) -> Outcome:
    """Change the time of a pending timer; see ``schedule`` for the arguments, ``cancel`` for the topic.

    ``after`` and ``at`` change the next occurrence only: a recurring timer keeps its schedule.

    Returns:
        RESCHEDULED, RUNNING, FIRED (it has finished, or was cancelled), or UNKNOWN.
    """
    when = _when(after, at, every, cron, tz, start)
    schedule = {"schedule": when.text} if when.text else {}

    def changes(using: str, now: datetime.datetime) -> dict[str, Any]:
        times = Timer.restart_values(using, when.due_at(now))
        return {**times, **schedule, "scheduled_at": in_columns(now, connections[using])}

    return _change(name, topic, Outcome.RESCHEDULED, changes)


def _when(after: object, at: object, every: object, cron: object, tz: object, start: object) -> _When:
    if [after, at, every, cron].count(None) != 3:
        raise BadOption("after", Hidden(), because=Sentence(_("give exactly one of after, at, every and cron")))
    if start is not None and every is None:
        raise BadOption("start", start, because=Sentence(_("it is only used with every")))
    if cron is not None:
        return _When(None, None, occurrences.cron(cron, tz))
    if every is not None:
        first = None if start is None else aware(options.moment("start", start))
        return _When(None, first, occurrences.every(every))
    if at is not None:
        return _When(None, aware(options.moment("at", at)), None)
    return _When(options.seconds("after", after, most=MAX_AHEAD), None, None)


def _now(using: str, topic: str) -> datetime.datetime:
    """Return the current time of the database; create the topic if it does not exist."""
    now = Topic.objects.using(using).filter(pk=topic).values_list(DbNow(), flat=True).first()
    if now is None:
        # Not get_or_create: its second read does not see a row that is newer than the transaction's snapshot.
        insert_unless_exists(Topic(pk=topic), using)
        now = read_clock(connections[using])
    return from_columns(now, connections[using])


def _put(
    using: str,
    result: Scheduled,
    values: dict[str, Any],
    mode: str,
    now: datetime.datetime,
    tried: dict[datetime.datetime, bool],
) -> Scheduled:
    name, topic, connection = result.name, result.topic, connections[using]
    rows = Timer.objects.using(using).filter(name=name, topic_id=topic)
    for _try in range(MAX_TRIES):
        existing = rows.values("finished_at", "due_at", "scheduled_at").first()
        if existing is None:
            tried[now] = True
            if Timer(name=name, topic_id=topic, **values).insert(using):
                return result
            del tried[now]
            if connection.in_atomic_block:  # its snapshot may be older than the row
                rows = rows.select_for_update()
            continue
        is_over = existing["finished_at"] is not None
        due_at, set_at = (from_columns(existing[name], connection) for name in ("due_at", "scheduled_at"))
        if set_at in tried:  # by a try whose reply was lost; it may have fired or been cancelled since
            return result._replace(due_at=for_project(due_at), is_new=tried[set_at])
        if not is_over and mode == "keep":
            return Scheduled(name, topic, for_project(due_at), False)
        if not is_over and mode == "error":
            in_use = Sentence(_("an unfinished timer of this topic has this name"))
            raise BadOption("name", name, because=in_use)
        replaceable = Q() if mode == "replace" else ~Q(finished_at=None)
        tried[now] = is_over
        if rows.filter(replaceable).update(**values, fence=F("fence") + 1):
            return result._replace(is_new=is_over)
        del tried[now]
    raise DatabaseUnavailable(f"timer {topic}/{name} {CHANGED}")


def _change(name: str, topic: str | None, done: Outcome, changes: _Changes) -> Outcome:
    using = router.db_for_write(Timer)
    rows = Timer.objects.using(using).filter(name=options.name("name", name))
    if topic is not None:
        rows = rows.filter(topic_id=options.name("topic", topic, most=MAX_TOPIC))
    return retrying(connections[using], partial(_change_once, rows, done, changes, set()))


def _only_one(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the unfinished timer, or any if all have finished; raises BadOption if several are unfinished."""
    if len(rows) > 1:
        rows = [row for row in rows if row["finished_at"] is None] or rows[:1]
    if len(rows) > 1:
        names = ", ".join(sorted(row["topic_id"] for row in rows))
        raise BadOption("topic", None, Sentence(_("one of %(names)s"), names=names))
    return rows[0]


def _change_once(rows: Any, done: Outcome, changes: _Changes, tried: set[datetime.datetime]) -> Outcome:
    is_cancel = done is Outcome.CANCELLED
    for _try in range(MAX_TRIES):
        timers = list(rows.values(*COLUMNS, now=DbNow())[: MAX_NAMES + 1])
        if not timers:
            return Outcome.UNKNOWN
        row = _only_one(timers)
        now = from_columns(row["now"], connections[rows.db])
        if from_columns(row["scheduled_at"], connections[rows.db]) in tried:
            return done  # by an earlier try whose reply was lost
        if row["finished_at"] is not None:
            is_same = row["state"] in (State.CANCELLED, State.DISCARDED)
            return done if is_same and is_cancel else Outcome.FIRED
        current = rows.filter(pk=row["pk"], fence=row["fence"]).unfinished()
        # A timer whose handler's process has crashed would fire again, so it can be cancelled.
        without_holder = current.filter(Q(state=State.PENDING) | Q(busy_before__lte=DbNow()))
        values = changes(rows.db, now)
        if "scheduled_at" in values:
            tried.add(now)
        if without_holder.update(**values, fence=F("fence") + 1):
            if "due_at" in values and from_columns(values["due_at"], connections[rows.db]) - now < SOON:
                nodes.notify_after_commit(rows.db, row["topic_id"])
            return done
        fires_again = is_cancel and row["schedule"]
        if row["state"] == State.RUNNING and (not fires_again or current.update(schedule="")):
            return Outcome.RUNNING
    raise DatabaseUnavailable(f"a timer {CHANGED}")

"""Setting timers, by any process: each call is one small transaction, or part of the caller's (R4.8)."""

import contextlib
import datetime
import enum
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from django.db import IntegrityError, connections, router, transaction
from django.db.models import F, Q
from django.utils.translation import gettext_noop as _

from resourcepool import options
from resourcepool.database.retry import Unsettled, retrying
from resourcepool.dialect import DbNow, aware, for_project, from_columns, in_columns, read_clock
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption, DatabaseUnavailable
from resourcepool.taskqueue import validators
from resourcepool.taskqueue.timers import nodes, occurrences
from resourcepool.taskqueue.timers.models import MAX_TOPIC, Timer, Topic

State = Timer.State
IF_EXISTS = ("replace", "keep", "error")
MOST_AHEAD = 36_500 * options.DAY  # seconds
SOON = datetime.timedelta(seconds=1.5)  # nodes look by themselves before that
LOOKS = 5  # tries at a row that others change at the same time
LOOKED_AT = ("pk", "topic_id", "fence", "state", "finished_at", "schedule", "scheduled_at")
MAX_NAMES = 5  # topics in an error


class Scheduled(NamedTuple):
    """A timer as it stands: ``is_new`` False when an unfinished one of this name was there before."""

    name: str
    topic: str
    due_at: datetime.datetime
    is_new: bool


class Outcome(enum.StrEnum):
    CANCELLED = "cancelled"  # it does not fire, or not again
    RESCHEDULED = "rescheduled"
    RUNNING = "running"  # too late: a handler has it
    FIRED = "fired"  # too late: it is over
    UNKNOWN = "unknown"  # no timer has this name


_Changes = Callable[[str, datetime.datetime], dict[str, Any]]  # of the database and its now


class _When(NamedTuple):
    after: float | None
    at: datetime.datetime | None
    schedule: occurrences.Schedule | None

    def due_at(self, now: datetime.datetime) -> datetime.datetime:
        if self.at is not None:
            return self.at
        if self.after is not None:
            return now + datetime.timedelta(seconds=self.after)
        found = None if self.schedule is None else self.schedule.after(now)
        if found is None:
            raise BadOption("cron", self.schedule, because=Sentence(occurrences.NEVER))
        return found


def schedule(
    name: str,
    *,
    topic: str,
    after: object = None,
    at: datetime.datetime | None = None,
    every: object = None,
    cron: str | None = None,
    start: datetime.datetime | None = None,
    tz: str = "UTC",
    payload: Mapping[str, Any] | None = None,
    catch_up: str = "once",
    if_exists: str = "replace",
) -> Scheduled:
    """Set a timer; inside a transaction of the caller it is set when that commits.

        timers.schedule("order-42-unpaid", after=timedelta(minutes=30), topic="order.timeout", payload={"order": 42})

    Give exactly one of ``after``, ``at``, ``every`` and ``cron``. All moments are by the database's clock.

    Args:
        name: unique in its topic while the timer is not over; up to 200 characters.
        topic: which handler it is for; see ``on``.
        after: seconds or timedelta from now.
        at: a datetime; one in the past fires at once.
        every: seconds (1 at least) or timedelta: fires again and again, for the first time after one interval.
        cron: five fields, as in a crontab, in the time zone ``tz``: "30 2 * * 1-5".
        start: with ``every``: when it fires for the first time.
        payload: what the handler gets; a JSON object of at most 64 KiB.
        catch_up: what a recurring timer does about occurrences that no node was alive for: "once", "all" or "skip".
        if_exists: "replace" a timer of this name that is not over (its handler, if it runs, loses it), "keep" it, or
            "error".

    Raises:
        BadOption: a value is not allowed, or the name is in use and ``if_exists`` is "error".
        DatabaseUnavailable: it is unknown whether it was set; call it again.
    """
    when = _when(after, at, every, cron, tz, start)
    name, topic = validators.name("name", name), validators.name("topic", topic, most=MAX_TOPIC)
    mode = options.one_of("if_exists", if_exists, IF_EXISTS)
    values = {
        "payload": validators.json_object("payload", {} if payload is None else payload),
        "catch_up": options.one_of("catch_up", catch_up, Timer.CatchUp.values),
        "schedule": "" if when.schedule is None else when.schedule.text(),
    }
    using = router.db_for_write(Timer)
    tried: dict[datetime.datetime, bool] = {}  # moments at which a row was written, and whether it was new
    is_soon = False

    def send() -> Scheduled:
        nonlocal is_soon
        now = _now(using, topic)
        due_at = when.due_at(now)
        is_soon = due_at - now < SOON
        restart_values = {
            **Timer.restart_values(using, due_at),
            "scheduled_at": in_columns(now, connections[using]),
        }
        return _put(
            using,
            Scheduled(name, topic, for_project(due_at), True),
            {**values, **restart_values},
            mode,
            now,
            tried,
        )

    def settle() -> Scheduled:
        if is_soon and not _leaves_a_row(using, name, topic):
            raise DatabaseUnavailable(f"timer {topic}/{name} may have been set, and have fired since")
        raise Unsettled

    made = retrying(connections[using], send, settle=settle)
    if is_soon:
        nodes.notify_after_commit(using, topic)
    return made


def cancel(name: str, *, topic: str | None = None) -> Outcome:
    """Make a timer not fire; of ``cancel`` and the handler exactly one wins, and this tells which.

    A recurring timer that is being handled does not fire again. Inside a transaction of the caller it counts when that
    commits, and no handler begins until then.

    Args:
        topic: None: the only topic that has such a timer.

    Returns:
        CANCELLED, RUNNING (a handler has it), FIRED (it was over before), or UNKNOWN.

    Raises:
        BadOption: several topics have one of this name.
        DatabaseUnavailable: it is unknown whether it was cancelled; call it again.
    """
    ended = {"state": State.CANCELLED, "finished_at": DbNow(), **Timer.unassigned_values()}
    return _change(name, topic, Outcome.CANCELLED, lambda _using, _now: ended)


def reschedule(
    name: str,
    *,
    topic: str | None = None,
    after: object = None,
    at: datetime.datetime | None = None,
    every: object = None,
    cron: str | None = None,
    start: datetime.datetime | None = None,
    tz: str = "UTC",
) -> Outcome:
    """Give a timer that has not begun another time; see ``schedule`` for the arguments, ``cancel`` for the topic.

    ``after`` and ``at`` move the next firing only: a recurring timer keeps its schedule.

    Returns:
        RESCHEDULED, RUNNING, FIRED (it is over, or cancelled), or UNKNOWN.
    """
    when = _when(after, at, every, cron, tz, start)
    kept = {} if when.schedule is None else {"schedule": when.schedule.text()}

    def changes(using: str, now: datetime.datetime) -> dict[str, Any]:
        restart_values = Timer.restart_values(using, when.due_at(now))
        return {**restart_values, **kept, "scheduled_at": in_columns(now, connections[using])}

    return _change(name, topic, Outcome.RESCHEDULED, changes)


def _when(after: object, at: object, every: object, cron: object, tz: object, start: object) -> _When:
    given = {"after": after, "at": at, "every": every, "cron": cron}
    named = [key for key, value in given.items() if value is not None]
    if len(named) != 1:
        raise BadOption(
            "after", ", ".join(named) or None, Sentence(_("exactly one of after, at, every and cron"))
        )
    if start is not None and every is None:
        raise BadOption("start", start, Sentence(_("a moment beside every, or nothing")))
    if cron is not None:
        return _When(None, None, occurrences.cron(cron, tz))
    if every is not None:
        first = None if start is None else aware(validators.moment("start", start))
        return _When(None, first, occurrences.every(every))
    if at is not None:
        return _When(None, aware(validators.moment("at", at)), None)
    return _When(options.seconds("after", after, most=MOST_AHEAD), None, None)


def make_topic(using: str, name: str, **options: Any) -> None:
    """Add a topic if there is none of this name."""
    # No get_or_create: it reads what was added meanwhile, which a transaction's snapshot does not show.
    with contextlib.suppress(IntegrityError), transaction.atomic(using=using):
        Topic.objects.using(using).create(pk=name, **options)


def _now(using: str, topic: str) -> datetime.datetime:
    """Return the database's now; add the topic if it is new."""
    now = Topic.objects.using(using).filter(pk=topic).values_list(DbNow(), flat=True).first()
    if now is None:
        make_topic(using, topic)
        now = read_clock(connections[using])
    return from_columns(now, connections[using])


def _leaves_a_row(using: str, name: str, topic: str) -> bool:
    """Whether one can tell if this timer was set and has fired: its row is there, or would still be."""
    rows = Timer.objects.using(using).filter(name=name, topic_id=topic)
    return rows.exists() or Topic.objects.using(using).filter(pk=topic, done_kept__gt=0).exists()


def _put(
    using: str,
    done: Scheduled,
    values: dict[str, Any],
    mode: str,
    now: datetime.datetime,
    tried: dict[datetime.datetime, bool],
) -> Scheduled:
    name, topic = done.name, done.topic
    rows = Timer.objects.using(using).filter(name=name, topic_id=topic)
    for _look in range(LOOKS):
        found = rows.values("finished_at", "due_at", "scheduled_at").first()
        if found is None:
            tried[now] = True
            if Timer(name=name, topic_id=topic, **values).insert(using):
                return done
            del tried[now]
            if connections[using].in_atomic_block:  # whose snapshot may be older than the row
                rows = rows.select_for_update()
            continue
        is_over = found["finished_at"] is not None
        due_at, set_at = (from_columns(found[name], connections[using]) for name in ("due_at", "scheduled_at"))
        if set_at in tried:  # by a try whose answer was lost; it may have fired, or been cancelled, since
            return done._replace(due_at=for_project(due_at), is_new=tried[set_at])
        if not is_over and mode == "keep":
            return Scheduled(name, topic, for_project(due_at), False)
        if not is_over and mode == "error":
            raise BadOption("name", name, because=Sentence(_("a timer of this topic has it, and is not over")))
        still = Q() if mode == "replace" else ~Q(finished_at=None)
        tried[now] = is_over
        if rows.filter(still).update(**values, fence=F("fence") + 1):
            return done._replace(is_new=is_over)
        del tried[now]
    raise DatabaseUnavailable(f"timer {topic}/{name} was changed by others {LOOKS} times meanwhile")


def _change(name: str, topic: str | None, done: Outcome, changes: _Changes) -> Outcome:
    using = router.db_for_write(Timer)
    rows = Timer.objects.using(using).filter(name=validators.name("name", name))
    if topic is not None:
        rows = rows.filter(topic_id=validators.name("topic", topic, most=MAX_TOPIC))
    return retrying(connections[using], partial(_change_once, rows, done, changes, set()))


def _only_one(found: list[dict[str, Any]]) -> dict[str, Any]:
    if len(found) > 1:  # finished ones do not count
        found = [one for one in found if one["finished_at"] is None] or found[:1]
    if len(found) > 1:
        names = ", ".join(sorted(row["topic_id"] for row in found))
        raise BadOption("topic", None, Sentence(_("one of %(names)s"), names=names))
    return found[0]


def _change_once(rows: Any, done: Outcome, changes: _Changes, tried: set[datetime.datetime]) -> Outcome:
    is_cancel = done is Outcome.CANCELLED
    for _look in range(LOOKS):
        columns = rows.values(*LOOKED_AT, now=DbNow())
        found = list(columns[: MAX_NAMES + 1])
        if not found:
            return Outcome.UNKNOWN
        row = _only_one(found)
        now = from_columns(row["now"], connections[rows.db])
        if from_columns(row["scheduled_at"], connections[rows.db]) in tried:
            return done  # by a try whose answer was lost, whatever has happened since
        if row["finished_at"] is not None:
            is_same = row["state"] in (State.CANCELLED, State.DISCARDED)
            return done if is_same and is_cancel else Outcome.FIRED
        mine = rows.filter(pk=row["pk"], fence=row["fence"]).unfinished()
        # A timer whose handler's process has died can be cancelled: it would fire again.
        unassigned_values = mine.filter(Q(state=State.PENDING) | Q(busy_before__lte=DbNow()))
        values = changes(rows.db, now)
        if "scheduled_at" in values:
            tried.add(now)
        if unassigned_values.update(**values, fence=F("fence") + 1):
            if "due_at" in values and from_columns(values["due_at"], connections[rows.db]) - now < SOON:
                nodes.notify_after_commit(rows.db, row["topic_id"])
            return done
        fires_again = is_cancel and row["schedule"]
        if row["state"] == State.RUNNING and (not fires_again or mine.update(schedule="")):
            return Outcome.RUNNING
    raise DatabaseUnavailable(f"a timer was changed by others {LOOKS} times meanwhile")

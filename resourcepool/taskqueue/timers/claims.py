"""The statements of a node: claim due timers, store their results. Each batch is one transaction."""

import datetime
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from django.db import connections
from django.db.models import F, Q

from resourcepool.clock import monotonic
from resourcepool.db.dialect import DbLater, DbNow, from_columns
from resourcepool.db.rows import for_update
from resourcepool.db.transactions import short_transaction
from resourcepool.events import sentence_for
from resourcepool.leases.statements import NOW, change
from resourcepool.signals import EventKind, RowEvent, emit
from resourcepool.taskqueue.abstract import UNFINISHED, event_reason
from resourcepool.taskqueue.policy import Result, end_of
from resourcepool.taskqueue.timers import occurrences
from resourcepool.taskqueue.timers.models import Timer, Topic

State, End = Timer.State, Timer.End
READ = ("pk", "name", "topic_id", "payload", "due_at", "schedule", "catch_up", "state", "holder")
COUNTS = ("fence", "attempts", "failures", "crashes", "previous_end")


class ClaimedTimer(NamedTuple):
    """A timer that this node has claimed for one attempt, under ``fence``."""

    pk: int
    fence: int
    holder: str
    sent_at: float  # see Grant
    topic: Topic
    name: str
    payload: str
    due_at: datetime.datetime
    now: datetime.datetime  # the database clock at the claim
    schedule: str
    fires: bool  # see Occurrence
    missed: int
    next_at: datetime.datetime | None
    attempt: int
    failures: int
    crashes: int
    previous_end: str


class Change(NamedTuple):
    """A verb of ``leases.statements.change``, its seconds from now, and the new values of further columns."""

    verb: str
    span: float
    columns: tuple[tuple[str, Any], ...]


Row = Mapping[str, Any]  # a timer as it was before the claim
Ends = Collection[tuple[ClaimedTimer, Result]]
Answer = tuple[list[ClaimedTimer], set[int]]


def begin_attempt(timer: ClaimedTimer, _: Row) -> Change:
    """Begin an attempt in this process."""
    counts = {"attempts": timer.attempt, "crashes": timer.crashes, "previous_end": timer.previous_end}
    columns = {"state": State.RUNNING.value, "started_at": NOW, **counts}
    return Change("hand over", timer.topic.ttl, tuple(columns.items()))


def finish_and_claim(
    using: str, ends: Ends, due: Collection[int], topics: Mapping[str, Topic], holder: str
) -> Answer:
    """Store results and claim due timers, in one transaction that may be sent again.

    Args:
        due: primary keys.
        holder: a name that no other call uses; it identifies a claim whose reply was lost.

    Returns:
        The claimed timers, and the primary keys of timers whose results were not stored because their rows are locked.
    """
    with short_transaction(connections[using]):
        locked = _finish(using, ends) if ends else set()
        return claim(using, due_rows(using, due, holder), topics, holder) if due else [], locked


def due_rows(using: str, due: Collection[int], holder: str) -> Any:
    """Return a queryset of these timers, if they are still due or if this holder has claimed them before."""
    rows = Timer.objects.using(using).filter(pk__in=due).unfinished()
    return rows.filter(Q(busy_before__lte=DbNow()) | Q(holder=holder))


def claim(
    using: str,
    rows: Any,
    topics: Mapping[str, Topic],
    holder: str,
    begin: Callable[[ClaimedTimer, Row], Change] = begin_attempt,
) -> list[ClaimedTimer]:
    """Claim those of these rows that are not locked and that fire, inside a transaction; see ``finish_and_claim``."""
    locked = for_update(rows, skip_locked=True).values(*READ, *COUNTS, now=DbNow())
    sent_at, claimed, batch = monotonic(), list[ClaimedTimer](), _Batch(using, holder)
    for row in locked:
        topic, is_new = topics[row["topic_id"]], row["holder"] != holder
        is_abandoned = is_new and row["state"] == State.RUNNING
        has_crashed = is_abandoned and row["holder"] != ""  # without a holder: its process released it
        former = dict(row)
        row["crashes"] += has_crashed
        if is_abandoned:
            row["previous_end"] = (End.EXPIRED if has_crashed else End.RELEASED).value
        why = occurrences.unreadable(row["schedule"])
        timer = _claimed(using, row | {"schedule": ""} if why else row, topic, holder, sent_at, is_new=is_new)
        if not is_new:  # claimed by an earlier try whose reply was lost
            until = DbLater(begin(timer, former).span)
            Timer.objects.using(using).filter(pk=timer.pk).update(busy_before=until)
            claimed.append(timer)
        elif has_crashed and timer.crashes >= topic.max_crashes:
            batch.give_up(timer, sentence_for("timer_process_crashed", count=timer.crashes))
        elif why:
            batch.give_up(timer, why)
        elif not timer.fires:
            batch.schedule_next(timer)
        else:
            batch.add(timer, begin(timer, former))
            claimed.append(timer._replace(fence=timer.fence + 1))
    batch.send()
    return claimed


def _claimed(using: str, row: Row, topic: Topic, holder: str, sent_at: float, *, is_new: bool) -> ClaimedTimer:
    due_at, now = (from_columns(row[name], connections[using]) for name in ("due_at", "now"))
    schedule, is_retry = occurrences.read(row["schedule"]), row["attempts"] > 0
    occurrence = occurrences.occurrence(schedule, row["catch_up"], due_at, now, is_retry=is_retry)
    columns = ("pk", "fence", "name", "payload", "schedule", "failures", "crashes", "previous_end")
    return ClaimedTimer(
        **{column: row[column] for column in columns},
        **occurrence._asdict(),
        attempt=row["attempts"] + is_new,
        due_at=due_at,
        now=now,
        holder=holder,
        sent_at=sent_at,
        topic=topic,
    )


def _finish(using: str, ends: Ends) -> set[int]:
    """Store the results of attempts that are still current; return the keys of locked rows."""
    rows = Timer.objects.using(using).filter(pk__in=[timer.pk for timer, _ in ends]).unfinished()
    unlocked = for_update(rows, skip_locked=True).values_list("pk", "fence", "schedule")
    current, batch = {pk: columns for pk, *columns in unlocked}, _Batch(using)
    for timer, result in ends:
        fence, schedule = current.get(timer.pk, (0, ""))
        if fence == timer.fence and not result.is_lost:  # the next claim counts a crash of a lost one
            is_cancelled = schedule != timer.schedule
            batch.end(timer._replace(next_at=None) if is_cancelled else timer, result)
    batch.send()
    missing = {(timer.pk, timer.fence) for timer, _ in ends if timer.pk not in current}
    if not missing or not connections[using].features.has_select_for_update_skip_locked:
        return set()
    locked = Timer.objects.using(using).filter(pk__in=[pk for pk, _ in missing]).unfinished()
    return {pk for pk, _ in missing.intersection(locked.values_list("pk", "fence"))}


class _Batch:
    """Changes of locked timers, each under its fence; equal changes are sent in one statement."""

    def __init__(self, using: str, holder: str = "") -> None:
        self._using, self._holder = using, holder
        self._held: dict[Change, list[tuple[int, int]]] = defaultdict(list)

    def add(self, timer: ClaimedTimer, change: Change) -> None:
        self._held[change].append((timer.pk, timer.fence))

    def send(self) -> None:
        for (verb, span, columns), held in self._held.items():
            names = [self._holder] if verb == "hand over" else []
            spans = () if verb == "delete" else span
            connection = connections[self._using]
            change(connection, Timer, verb, held, spans, *names, where=UNFINISHED, also=dict(columns))

    def end(self, timer: ClaimedTimer, result: Result) -> None:
        end = end_of(timer.topic, result, timer.failures, timer.crashes)
        failures, crashes = end.counts or (timer.failures, timer.crashes)
        is_disconnected = crashes > timer.crashes
        timer = timer._replace(failures=failures, crashes=crashes)
        if end.state == State.DEAD:
            self.give_up(timer, end.outcome)
        elif end.state != State.PENDING:
            self._finish(timer, end.state, end.outcome)
        else:
            columns = {"state": end.state, "outcome": end.outcome, "failures": failures, "crashes": crashes}
            if not result.has_begun:
                columns["attempts"] = timer.attempt - 1
            elif is_disconnected:
                columns["previous_end"] = End.EXPIRED.value
            else:
                is_clean = not result.is_given_back and not result.is_cut_off
                columns["previous_end"] = (End.CLEAN if is_clean else End.RELEASED).value
            self.add(timer, Change("release", end.delay, tuple(columns.items())))

    def give_up(self, timer: ClaimedTimer, outcome: str) -> None:
        what = EventKind.DEAD if timer.next_at is None else EventKind.FAILED
        reason = event_reason(f"{timer.topic.name}/{timer.name}", outcome)
        emit(RowEvent(what, Timer, self._using, timer.pk, timer.fence, timer.holder, reason))
        self._finish(timer, State.DEAD.value, outcome)

    def _finish(self, timer: ClaimedTimer, state: str | None, outcome: str) -> None:
        """Finish a timer, or delete it (``state`` None); a recurring one waits for its next occurrence."""
        if timer.next_at is not None:
            self.schedule_next(timer, outcome)
        elif state is None:
            self.add(timer, Change("delete", 0.0, ()))
        else:
            counts = {"failures": timer.failures, "crashes": timer.crashes}
            columns = {"state": state, "outcome": outcome, "finished_at": NOW, **counts}
            self.add(timer, Change("release", 0.0, tuple(columns.items())))

    def schedule_next(self, timer: ClaimedTimer, outcome: str = "") -> None:
        assert timer.next_at is not None  # noqa: S101 (for the type checker)
        mine = Timer.objects.using(self._using).filter(pk=timer.pk, fence=timer.fence)
        columns = {**Timer.restart_values(self._using, timer.next_at), "outcome": outcome}
        mine.update(fence=F("fence") + 1, **columns)

"""The statements of a node: read due timers, claim them, store their results. Each batch is one transaction."""

import datetime
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db import connections
from django.db.models import F, Q

from resourcepool.clock import monotonic
from resourcepool.db import dialect
from resourcepool.db.dialect import DbLater, DbNow, MicrosUntil, NullInOrder, from_columns
from resourcepool.db.rows import batched, for_update
from resourcepool.db.transactions import short_transaction
from resourcepool.events import sentence_for
from resourcepool.signals import EventKind, RowEvent, emit
from resourcepool.taskqueue.abstract import event_reason
from resourcepool.taskqueue.running_task import Result
from resourcepool.taskqueue.timers import occurrences
from resourcepool.taskqueue.timers.models import LATE_AFTER, Timer, Topic
from resourcepool.taskqueue.timers.rules import Rule, retry_delay

logger = logging.getLogger(__name__)

State, End = Timer.State, Timer.End
RESEND_AFTER = 60.0  # seconds until an unclaimed timer is handed over again
TOPICS_AT_ONCE = 200  # SQLite allows 500 queries in a UNION; each topic has two
ANY_TOPIC = "\0"  # a placeholder, which is not a valid name
READ = ("pk", "name", "topic_id", "payload", "due_at", "schedule", "catch_up", "state", "holder")
COUNTS = ("fence", "attempts", "failures", "crashes", "previous_end")


class DueTimer(NamedTuple):
    """A timer that is due or next; ``due_in``: microseconds until it may be claimed."""

    pk: int
    topic: str
    due_in: int
    schedule: str = ""

    @property
    def is_late(self) -> bool:
        return self.due_in < -LATE_AFTER * 1_000_000


class ClaimedTimer(NamedTuple):
    """A timer that this node has claimed for one attempt, under ``fence``."""

    pk: int
    fence: int
    holder: str
    sent_at: float  # see Grant
    rule: Rule
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


class AttemptEnd(NamedTuple):
    """How an attempt ended.

    Attributes:
        is_lost: it failed after its lease had ended.
        has_begun: the handler was called.
        is_cut_off: the process exits without waiting for the handler.
    """

    claimed: ClaimedTimer
    result: Result
    is_lost: bool = False
    has_begun: bool = True
    is_cut_off: bool = False

    @property
    def how(self) -> str:
        if self.result.is_given_back:
            return "released"
        if self.result.error is None:
            return "handled"
        return "lost its lease" if self.is_lost else "failed"


Answer = tuple[list[ClaimedTimer], set[int]]


def read_rules(using: str, topics: Collection[str]) -> dict[str, Rule]:
    """Return the rules of these topics, if they exist."""
    rows = Topic.objects.using(using).filter(pk__in=topics).values_list(*Rule._fields)
    return {row[0]: Rule(*row) for row in rows}


def read_due(
    using: str, topics: Sequence[str], most: int, late: int, without: Collection[int] = ()
) -> list[DueTimer]:
    """Return up to ``most`` timers of each topic that are due or next, and up to ``late`` late ones, by due time.

    Args:
        without: primary keys of timers to skip.
    """
    groups = batched(topics, TOPICS_AT_ONCE)
    timers = [timer for group in groups for timer in _read_due(using, group, most, late, without)]
    return sorted(timers, key=lambda timer: timer.due_in)


def _read_due(
    using: str, topics: Iterable[str], most: int, late: int, without: Collection[int]
) -> list[DueTimer]:
    # Compiled once, not for each topic, which would take longer than the query.
    compiled = [
        rows.query.get_compiler(using).as_sql() for rows in _heads(using, ANY_TOPIC, most, late, without)
    ]
    each = [(text, topic, params) for topic in topics for text, params in compiled]
    # Subqueries, because SQLite allows no LIMIT within a UNION.
    sql = " UNION ALL ".join(f"SELECT * FROM ({text}) t{number}" for number, (text, _, _) in enumerate(each))  # noqa: S608
    params = [topic if param == ANY_TOPIC else param for _, topic, own_params in each for param in own_params]
    rows = dialect.run(connections[using], sql, params, dialect.all_rows)
    return [DueTimer(*row) for row in rows]


def _heads(using: str, topic: str, most: int, late: int, without: Collection[int]) -> Iterable[Any]:
    rows = Timer.objects.using(using).filter(topic_id=topic).unfinished()
    rows = rows.order_by(NullInOrder("finished_at"), "busy_before")
    if without:
        rows = rows.exclude(pk__in=without)
    columns = ("pk", "topic_id", MicrosUntil("busy_before"), "schedule")
    yield rows.filter(busy_before__gte=DbLater(-LATE_AFTER)).values_list(*columns)[:most]
    if late:
        yield rows.filter(busy_before__lt=DbLater(-LATE_AFTER)).values_list(*columns)[:late]


def finish_and_claim(
    using: str, ends: Collection[AttemptEnd], due: Collection[DueTimer], rules: Mapping[str, Rule], holder: str
) -> Answer:
    """Store results and claim due timers, in one transaction that may be sent again.

    Args:
        holder: a name that no other call uses; it identifies a claim whose reply was lost.

    Returns:
        The claimed timers, and the primary keys of timers whose results were not stored because their rows are locked.
    """
    try:
        return _finish_and_claim(using, ends, due, rules, holder)
    except Exception as error:
        if not ends or not dialect.refuses_text(connections[using], error):
            raise
        logger.warning("the database refuses the text of a result or an error: %s", error)
        escaped = [end._replace(result=end.result.ascii_escaped()) for end in ends]
        return _finish_and_claim(using, escaped, due, rules, holder)


def _finish_and_claim(
    using: str, ends: Collection[AttemptEnd], due: Collection[DueTimer], rules: Mapping[str, Rule], holder: str
) -> Answer:
    with short_transaction(connections[using]):
        locked = _store(using, ends)
        return _claim(using, _due(using, due, holder), rules, holder) if due else [], locked


def hand_over(using: str, due: Collection[DueTimer], rules: Mapping[str, Rule], holder: str) -> Answer:
    """Reserve due timers for other processes, which claim them by the returned fences.

    A timer stays pending, so that it can be cancelled, and is due again after ``RESEND_AFTER``. Its ``started_at`` is
    the time at which it was first handed over. See ``finish_and_claim``.
    """
    with short_transaction(connections[using]):
        return _claim(using, _due(using, due, holder), rules, holder, is_handed=True), set()


def claim_handed_over(using: str, pk: int, fence: int, rule: Rule, holder: str) -> ClaimedTimer | None:
    """Claim a timer that was handed over under this fence; None: the fence is outdated. See ``finish_and_claim``."""
    rows = Timer.objects.using(using).filter(pk=pk, topic_id=rule.name).unfinished()
    matching = rows.filter(Q(fence=fence, state=State.PENDING) | Q(holder=holder))
    with short_transaction(connections[using]):
        claimed = _claim(using, matching, {rule.name: rule}, holder)
    return claimed[0] if claimed else None


def _due(using: str, due: Collection[DueTimer], holder: str) -> Any:
    rows = Timer.objects.using(using).filter(pk__in=[timer.pk for timer in due]).unfinished()
    return rows.filter(Q(busy_before__lte=DbNow()) | Q(holder=holder))


def _claim(
    using: str, timers: Any, rules: Mapping[str, Rule], holder: str, *, is_handed: bool = False
) -> list[ClaimedTimer]:
    rows = for_update(timers, skip_locked=True).values(*READ, *COUNTS, now=DbNow())
    sent_at, claimed, unclaimed = monotonic(), list[ClaimedTimer](), 0
    groups: dict[tuple[float, bool, bool, str], list[int]] = defaultdict(list)
    for row in rows:
        if why := occurrences.unreadable(row["schedule"]):
            log_unreadable(row["topic_id"], row["pk"], why)
            continue
        rule, is_new = rules[row["topic_id"]], row["holder"] != holder
        row |= {key: from_columns(row[key], connections[using]) for key in ("due_at", "now")}
        is_running, has_holder = row["state"] == State.RUNNING, row["holder"] != ""
        has_crashed = is_new and is_running and has_holder
        is_unclaimed = is_new and is_handed and row["state"] == State.PENDING and has_holder
        unclaimed += is_unclaimed
        row["crashes"] += has_crashed
        if is_new and is_running:  # without a holder: its process released it when it exited
            row["previous_end"] = (End.EXPIRED if has_crashed else End.RELEASED).value
        timer = _claimed(row, rule, holder, sent_at, is_new=is_new)
        if not is_new:  # claimed by an earlier try whose reply was lost
            until = DbLater(RESEND_AFTER if is_handed else rule.ttl)
            Timer.objects.using(using).filter(pk=timer.pk).update(busy_before=until)
            claimed.append(timer)
        elif has_crashed and row["crashes"] >= rule.max_crashes:
            outcome = sentence_for("timer_process_crashed", count=row["crashes"])
            _finish(using, [timer], State.DEAD, outcome, crashes=row["crashes"])
        elif not timer.fires:
            _schedule_next(using, timer)
        else:
            groups[rule.ttl, has_crashed, is_unclaimed, row["previous_end"]].append(timer.pk)
            claimed.append(timer)
    if unclaimed:
        logger.warning("%d timers were handed over but not claimed within %g s", unclaimed, RESEND_AFTER)
    for (ttl, has_crashed, is_unclaimed, previous_end), pks in groups.items():
        attempt = {"state": State.RUNNING, "busy_before": DbLater(ttl), "attempts": F("attempts") + 1}
        if is_handed:
            attempt = {"state": State.PENDING, "busy_before": DbLater(RESEND_AFTER)}
        started_at = F("started_at") if is_unclaimed else DbNow()  # the start of its wait
        crashes = F("crashes") + int(has_crashed)
        columns = {"previous_end": previous_end, "started_at": started_at, "crashes": crashes}
        _change(using, pks, holder=holder, **attempt, **columns)
    return claimed


def log_unreadable(topic: str, pk: int, why: str) -> None:
    """Log that a timer is left to nodes that can read its schedule."""
    logger.warning(
        "timer number %d of topic %s is left to other nodes: cannot read its schedule: %s", pk, topic, why
    )


def _claimed(row: Mapping[str, Any], rule: Rule, holder: str, sent_at: float, *, is_new: bool) -> ClaimedTimer:
    schedule, is_retry = occurrences.read(row["schedule"]), row["attempts"] > 0
    occurrence = occurrences.occurrence(schedule, row["catch_up"], row["due_at"], row["now"], is_retry=is_retry)
    columns = ("pk", "name", "payload", "due_at", "now", "schedule", "failures", "crashes")
    return ClaimedTimer(
        **{column: row[column] for column in columns},
        **occurrence._asdict(),
        fence=row["fence"] + is_new,
        attempt=row["attempts"] + is_new,
        previous_end=row["previous_end"],
        holder=holder,
        sent_at=sent_at,
        rule=rule,
    )


def _store(using: str, ends: Collection[AttemptEnd]) -> set[int]:
    """Store the results of attempts that are still current; return the keys of locked rows."""
    if not ends:
        return set()
    rows = Timer.objects.using(using).filter(pk__in=[end.claimed.pk for end in ends]).unfinished()
    unlocked = for_update(rows, skip_locked=True).values_list("pk", "fence", "schedule")
    current = {pk: columns for pk, *columns in unlocked}
    matching = [end for end in ends if current.get(end.claimed.pk, (0,))[0] == end.claimed.fence]
    done: dict[tuple[float, str], list[ClaimedTimer]] = defaultdict(list)
    for end in matching:
        claimed, result = end.claimed, end.result
        if current[claimed.pk][1] != claimed.schedule:
            claimed = claimed._replace(next_at=None)  # cancelled meanwhile
        if end.is_lost:
            continue  # the next claim counts a crash
        if result.error is None and not result.is_given_back:
            done[claimed.rule.done_kept, result.outcome].append(claimed)
        elif result.is_disconnected and claimed.crashes + 1 < claimed.rule.max_crashes:
            _retry_after_disconnection(using, claimed, end)
        elif result.is_given_back or claimed.failures + 1 <= claimed.rule.retries:
            _retry(using, claimed, end)
        else:
            _finish(using, [claimed], State.DEAD, result.error or "", failures=claimed.failures + 1)
    for (kept, outcome), group in done.items():
        _finish(using, group, State.DONE, outcome, kept=kept)
    missing = {(end.claimed.pk, end.claimed.fence) for end in ends if end.claimed.pk not in current}
    if not missing or not connections[using].features.has_select_for_update_skip_locked:
        return set()
    locked = Timer.objects.using(using).filter(pk__in=[pk for pk, _fence in missing]).unfinished()
    return {pk for pk, _fence in missing.intersection(locked.values_list("pk", "fence"))}


def _finish(
    using: str, group: list[ClaimedTimer], state: Timer.State, outcome: str, *, kept: float = 1.0, **counts: Any
) -> None:
    """Finish these timers; recurring timers wait for their next occurrence."""
    for timer in group:
        if state == State.DEAD:
            what = EventKind.DEAD if timer.next_at is None else EventKind.FAILED
            reason = event_reason(f"{timer.rule.name}/{timer.name}", outcome)
            emit(RowEvent(what, Timer, using, timer.pk, timer.fence, timer.holder, reason))
        if timer.next_at is not None:
            _schedule_next(using, timer, outcome)
    finished = [timer.pk for timer in group if timer.next_at is None]
    if finished and not kept:
        Timer.objects.using(using).filter(pk__in=finished).delete()
    elif finished:
        columns = {"state": state, "outcome": outcome, "finished_at": DbNow()}
        _change(using, finished, **columns, **Timer.unassigned_values(), **counts)


def _schedule_next(using: str, timer: ClaimedTimer, outcome: str = "") -> None:
    assert timer.next_at is not None  # noqa: S101 (for the type checker)
    _change(using, [timer.pk], **{**Timer.restart_values(using, timer.next_at), "outcome": outcome})


def _retry(using: str, timer: ClaimedTimer, end: AttemptEnd) -> None:
    changes: dict[str, Any] = {"outcome": end.result.outcome, "busy_before": DbLater(end.result.delay)}
    if not end.result.is_given_back:
        delay = DbLater(retry_delay(timer.rule.retry_delay, timer.failures + 1))
        changes = {"outcome": end.result.error, "busy_before": delay, "failures": timer.failures + 1}
    if not end.has_begun:
        changes["attempts"] = F("attempts") - 1
    else:
        is_clean = not end.result.is_given_back and not end.is_cut_off
        changes["previous_end"] = End.CLEAN if is_clean else End.RELEASED
    _change(using, [timer.pk], state=State.PENDING, holder="", **changes)


def _retry_after_disconnection(using: str, timer: ClaimedTimer, end: AttemptEnd) -> None:
    """Retry a timer that lost its database connection, after a delay; that counts as a crash."""
    counts = {"outcome": end.result.error, "crashes": timer.crashes + 1, "previous_end": End.EXPIRED}
    pending = {"state": State.PENDING, "holder": "", "busy_before": DbLater(timer.rule.retry_delay)}
    _change(using, [timer.pk], **pending, **counts)


def _change(using: str, pks: Collection[int], **changes: Any) -> None:
    Timer.objects.using(using).filter(pk__in=pks).update(fence=F("fence") + 1, **changes)

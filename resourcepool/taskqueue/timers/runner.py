"""A node: a process that finds due timers, claims them and handles them."""

import contextlib
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Never

from django.db import connections, router

from resourcepool import hints, options
from resourcepool.clock import monotonic
from resourcepool.db import dialect
from resourcepool.db.dialect import DbLater, MicrosUntil, NullInOrder
from resourcepool.db.open_transaction import refuse_callers_transaction
from resourcepool.db.retry import retrying
from resourcepool.db.rows import batched
from resourcepool.db.threads import Wakeup
from resourcepool.db.timeouts import statement_timeout
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.leases.terms import default_holder
from resourcepool.options import Seconds, labels_of
from resourcepool.taskqueue.policy import GIVEN_BACK, Result
from resourcepool.taskqueue.timers import claims, handlers
from resourcepool.taskqueue.timers.handlers import RunningTimer
from resourcepool.taskqueue.timers.models import LATE_AFTER, Timer, Topic
from resourcepool.taskqueue.timers.nodes import Node, node_labels, node_version, version_of
from resourcepool.taskqueue.worker_loop import GRACE, InHand, Runner, Worker, exit_process, store

TOPICS_MAX_AGE = 2.5  # seconds until a change of a topic takes effect
MIN_PAUSE, MAX_PAUSE = 0.02, 1.0  # seconds between two queries
TOPICS_AT_ONCE = 200  # SQLite allows 500 queries in a UNION; each topic has two
ANY_TOPIC = "\0"  # a placeholder, which is not a valid name
THREADS, MAX_THREADS = 4, 256
OPEN_TRANSACTION = "timers are handled outside transactions, but one is open on their database"
LATE_RATE = 100.0  # timers per second
AHEAD = 0.05  # seconds of work that are claimed at once for each thread
MAX_AHEAD = 64  # timers
SLOW_AFTER = 1.0  # seconds; a handler counts as slow then, and a claimed timer waits no longer for a thread


class DueTimer(NamedTuple):
    """A timer that is due or next; ``due_in``: microseconds until it may be claimed."""

    pk: int
    topic: str
    due_in: int

    @property
    def is_late(self) -> bool:
        return self.due_in < -LATE_AFTER * 1_000_000


def read_topics(using: str, names: Collection[str]) -> dict[str, Topic]:
    return Topic.objects.using(using).in_bulk(list(names))


def read_due(using: str, topics: Sequence[str], most: int, late: int) -> list[DueTimer]:
    """Return up to ``most`` timers of each topic that are due or next, and up to ``late`` late ones, by due time."""
    timers: list[DueTimer] = []
    # Compiled once, not for each topic, which would take longer than the query.
    compiled = [rows.query.get_compiler(using).as_sql() for rows in _heads(using, ANY_TOPIC, most, late)]
    for group in batched(topics, TOPICS_AT_ONCE):
        each = [(text, topic, params) for topic in group for text, params in compiled]
        # Subqueries, because SQLite allows no LIMIT within a UNION.
        queries = [f"SELECT * FROM ({text}) t{number}" for number, (text, _, _) in enumerate(each)]  # noqa: S608
        params = [topic if one == ANY_TOPIC else one for _, topic, own in each for one in own]
        rows = dialect.run(connections[using], " UNION ALL ".join(queries), params, dialect.all_rows)
        timers += [DueTimer(*row) for row in rows]
    return sorted(timers, key=lambda timer: timer.due_in)


def _heads(using: str, topic: str, most: int, late: int) -> Iterable[Any]:
    rows = Timer.objects.using(using).filter(topic_id=topic).unfinished()
    rows = rows.order_by(NullInOrder("finished_at"), "busy_before")
    columns = ("pk", "topic_id", MicrosUntil("busy_before"))
    yield rows.filter(busy_before__gte=DbLater(-LATE_AFTER)).values_list(*columns)[:most]
    if late:
        yield rows.filter(busy_before__lt=DbLater(-LATE_AFTER)).values_list(*columns)[:late]


class TokenBucket:
    """A rate limit: ``per_second`` on average, and as many at once after a pause. The caller passes the time."""

    def __init__(self, per_second: float) -> None:
        self._rate, self._left, self._at = per_second, per_second, -math.inf

    def left(self, now: float) -> int:
        self._left = min(self._rate, self._left + (now - self._at) * self._rate)
        self._at = now
        return int(self._left)

    def take(self, count: int) -> None:
        self._left -= count


class DueTimers:
    """The timers of the topics that this node may handle."""

    def __init__(self, using: str, node: Node, late_rate: float) -> None:
        self._using, self._node, self._rate = using, node, TokenBucket(late_rate)
        self._topics: dict[str, Topic] = {}
        self._topics_at = -math.inf

    def read_topics(self, now: float) -> None:
        """Read the topics if that is due, and renew the node. Raises DatabaseUnavailable."""
        if now - self._topics_at >= TOPICS_MAX_AGE:
            read, node = partial(read_topics, self._using, handlers.topics()), self._node
            found = retrying(connections[self._using], read).values()
            self._topics = {one.name: one for one in found if not one.refusal(node.labels, node.version)}
            self._topics_at = now
        self._node.renew(self._topics)

    def choose(self, room: int) -> tuple[list[DueTimer], float]:
        """Return up to ``room`` timers that may begin now, punctual ones first, and the time of the next query."""
        if room <= 0:
            return [], monotonic() + MAX_PAUSE
        topics = [name for name, topic in self._topics.items() if not topic.is_paused]
        late_room = min(room, self._rate.left(monotonic()))
        read = partial(read_due, self._using, topics, room + 1, late_room)
        timers, read_at = retrying(connections[self._using], read), monotonic()
        due = [timer for timer in timers if timer.due_in <= 0]
        late = [timer for timer in due if timer.is_late]
        chosen = ([timer for timer in due if not timer.is_late] + late)[:room]
        pause = min((timer.due_in / 1_000_000 for timer in timers if timer.due_in > 0), default=MAX_PAUSE)
        if late_room < room and len(late) >= late_room:  # there may be more late timers, for later
            pause = min(pause, 5 * MIN_PAUSE)
        return chosen, read_at + min(pause, MAX_PAUSE)

    def claim(self, due: list[DueTimer], send: Callable[..., claims.Answer]) -> claims.Answer:
        """Claim these timers. What was claimed by a call that failed expires."""
        send = partial(send, [timer.pk for timer in due], self._topics, default_holder())
        claimed, locked = retrying(connections[self._using], send)
        late = {timer.pk for timer in due if timer.is_late}
        self._rate.take(sum(timer.pk in late for timer in claimed))
        return claimed, locked


class TimerWorker(Worker[RunningTimer]):
    """The worker of a node that runs handlers."""

    def __init__(self, using: str, node: Node, threads: int, late_rate: float, wakeup: Wakeup) -> None:
        self.in_hand = InHand(wakeup)
        self._using, self._threads = using, threads
        self._timers = DueTimers(using, node, late_rate)
        self._average_runtime = AHEAD  # seconds

    def exchange(self, *, may_begin: bool) -> float:
        now, in_hand = monotonic(), self.in_hand
        self._give_back_waiting(now)
        if may_begin:
            self._timers.read_topics(now)
        due, next_at = self._timers.choose(self._room() if may_begin else 0)
        if in_hand.ends or due:
            # A recurring or failed timer may be due again at once.
            may_recur = any(
                timer.claimed.schedule or result.error is not None for timer, result in in_hand.ends.items()
            )
            begun = self._finish_and_claim(due)
            if may_recur:
                next_at = monotonic()
            elif due and not begun:  # others claimed or locked them
                next_at = monotonic() + MIN_PAUSE
        return next_at

    def _room(self) -> int:
        """Return how many more timers to claim: as many as the threads can handle in ``AHEAD`` seconds."""
        ahead = min(MAX_AHEAD, max(1, int(AHEAD / max(self._average_runtime, 1e-6))))
        slow_since, running = monotonic() - SLOW_AFTER, self.in_hand.running
        slow = sum(timer.begun_at < slow_since for timer in running)
        return (self._threads - slow) * ahead - (len(running) - slow)

    def _give_back_waiting(self, now: float) -> None:
        """Release timers that have waited too long for a thread: other nodes may have free threads."""
        for timer in self.in_hand.running:
            if not timer.has_begun and now - timer.claimed.sent_at > SLOW_AFTER and timer.take_turn():
                self.in_hand.end(timer, GIVEN_BACK)

    def _finish_and_claim(self, due: list[DueTimer]) -> int:
        """Store results, claim timers, and run these; return how many."""
        for timer in self.in_hand.ends:
            timer.lease._stop_renewing()  # a renewal would find another fence

        def send(ends: Mapping[RunningTimer, Result]) -> claims.Answer:
            pairs = [(timer.claimed, result) for timer, result in ends.items()]
            return self._timers.claim(due, partial(claims.finish_and_claim, self._using, pairs))

        claimed, locked = store(connections[self._using], self.in_hand.ends, send)
        stored = [timer for timer in self.in_hand.ends if timer.pk not in locked]
        for timer in stored:
            timer.lease._mark_released()
            if timer.has_begun:
                self._average_runtime += (timer.took - self._average_runtime) / 8
        self.in_hand.forget(stored)
        begun = [RunningTimer(self._using, each, handlers.find(each.topic.name)) for each in claimed]
        self.in_hand.run(begun, self._threads)
        return len(begun)


class TimerRunner(Runner):
    """Handles the timers of all topics for which this process has handlers; start several, on several hosts.

        TimerRunner(threads=4).run()

    One of them begins each due timer. A timer is handled again only if its handler failed, or if its process crashed or
    was suspended for longer than the topic's ttl; ``timer.guard()`` of the first attempt fails then.

    Not promised: a handler that does not use ``guard`` may still have effects after its lease has expired.
    """

    def __init__(
        self,
        *,
        threads: int = THREADS,
        labels: Mapping[str, str] | None = None,
        version: str | None = None,
        grace: Seconds = GRACE,
        late_rate: float = LATE_RATE,
        exit_process: Callable[[str], Never] = exit_process,
    ) -> None:
        """Create the runner; ``run`` starts it.

        Args:
            threads: how many handlers run at a time.
            labels: the labels of this node, such as {"zone": "eu"}; a node with the label "canary" handles only topics
                that allow it. None: RESOURCEPOOL["NODE_LABELS"].
            version: the version of the code on this node, such as "2.10"; None: RESOURCEPOOL["NODE_VERSION"].
            grace: seconds or timedelta that running handlers get after ``stop``.
            late_rate: timers per second to begin that are late by more than a minute; it spreads the backlog after an
                outage.
            exit_process: see ``Consumer``.

        Raises:
            BadOption: a value is not allowed.
        """
        self.threads = options.whole("threads", threads, least=1, most=MAX_THREADS)
        self.labels = node_labels() if labels is None else labels_of(labels)
        self.version = node_version() if version is None else version_of("version", version)
        super().__init__(grace, exit_process)
        self._late_rate = options.rate("late_rate", late_rate, least=1.0, most=100_000.0)

    def look_up(self) -> None:
        """Check that the tables can be read. Raises DatabaseUnavailable, NotMigrated."""
        using = router.db_for_write(Timer)
        with statement_timeout():
            retrying(connections[using], Timer.objects.using(using).exists)

    def run(self) -> None:
        """Handle timers until ``stop``.

        Raises:
            ClaimInTransaction: a transaction is open.
        """
        using = router.db_for_write(Timer)
        refuse_callers_transaction(connections[using], OPEN_TRANSACTION)
        hints.listen(self._wakeup.wake)
        node = Node(using, self.labels, self.version)
        worker = self._worker(using, node)
        try:
            self._serve("timers", worker)
        finally:
            with contextlib.suppress(DatabaseUnavailable), statement_timeout():
                node.leave()

    def _worker(self, using: str, node: Node) -> Worker[RunningTimer]:
        return TimerWorker(using, node, self.threads, self._late_rate, self._wakeup)

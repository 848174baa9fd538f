"""The due timers that a node may begin: it finds and claims them."""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from django.db import connections

from resourcepool.clock import monotonic
from resourcepool.db import dialect
from resourcepool.db.dialect import DbLater, MicrosUntil, NullInOrder
from resourcepool.db.retry import retrying
from resourcepool.db.rows import batched
from resourcepool.leases.terms import default_holder
from resourcepool.taskqueue.timers import claims, handlers
from resourcepool.taskqueue.timers.models import LATE_AFTER, Timer, Topic
from resourcepool.taskqueue.timers.nodes import Node, Rule, may_handle

RULES_MAX_AGE = 2.5  # seconds until a change of a topic takes effect
MIN_PAUSE, MAX_PAUSE = 0.02, 1.0  # seconds between two queries
TOPICS_AT_ONCE = 200  # SQLite allows 500 queries in a UNION; each topic has two
ANY_TOPIC = "\0"  # a placeholder, which is not a valid name


class DueTimer(NamedTuple):
    """A timer that is due or next; ``due_in``: microseconds until it may be claimed."""

    pk: int
    topic: str
    due_in: int

    @property
    def is_late(self) -> bool:
        return self.due_in < -LATE_AFTER * 1_000_000


def read_rules(using: str, topics: Collection[str]) -> dict[str, Rule]:
    """Return the rules of these topics, if they exist."""
    return {rule.name: rule for rule in Rule.read(Topic.objects.using(using).filter(pk__in=topics))}


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
        self._rules: dict[str, Rule] = {}
        self._rules_at = -math.inf
        # Claims under ``_holder`` whose reply is missing, with the rules at the time of the claim.
        self._unanswered: dict[int, tuple[DueTimer, Rule]] = {}
        self._holder = default_holder()

    @property
    def has_unanswered(self) -> bool:
        """Whether the reply to a claim was lost: it has to be sent again."""
        return bool(self._unanswered)

    def read_rules(self, now: float) -> None:
        """Read the rules of the topics if that is due, and renew the node. Raises DatabaseUnavailable."""
        if now - self._rules_at >= RULES_MAX_AGE:
            rules = retrying(connections[self._using], partial(read_rules, self._using, handlers.topics()))
            node = self._node
            self._rules = {
                name: rule for name, rule in rules.items() if may_handle(rule, node.labels, node.version)
            }
            self._rules_at = now
        self._node.renew(self._rules)

    def choose(self, room: int) -> tuple[list[DueTimer], float]:
        """Return up to ``room`` timers that may begin now, punctual ones first, and the time of the next query."""
        if room <= 0:
            return [], monotonic() + MAX_PAUSE
        topics = [name for name, rule in self._rules.items() if not rule.is_paused]
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
        """Claim these timers, and repeat claims whose reply was lost, by the rules of their time."""
        self._unanswered.update({timer.pk: (timer, self._rules[timer.topic]) for timer in due})
        rules = {rule.name: rule for _, rule in self._unanswered.values()}
        send = partial(send, list(self._unanswered), rules, self._holder)
        claimed, locked = retrying(connections[self._using], send)
        late = {timer.pk for timer, _ in self._unanswered.values() if timer.is_late}
        self._rate.take(sum(timer.pk in late for timer in claimed))
        self._holder, self._unanswered = default_holder(), {}
        return claimed, locked

"""The due timers that a node may begin: it finds and claims them."""

import math
from collections.abc import Callable
from functools import partial

from django.db import connections

from resourcepool.clock import monotonic
from resourcepool.db.retry import retrying
from resourcepool.leases.terms import default_holder
from resourcepool.taskqueue.timers import claims, handlers, occurrences
from resourcepool.taskqueue.timers.claims import DueTimer
from resourcepool.taskqueue.timers.nodes import Node
from resourcepool.taskqueue.timers.rules import Rule, TokenBucket, may_handle

RULES_MAX_AGE = 2.5  # seconds until a change of a topic takes effect
MIN_PAUSE, MAX_PAUSE = 0.02, 1.0  # seconds between two queries
SKIP_UNREADABLE_FOR = 60.0  # seconds


class DueTimers:
    """The timers of the topics that this node may handle."""

    def __init__(self, using: str, node: Node, late_rate: float) -> None:
        self._using, self._node, self._rate = using, node, TokenBucket(late_rate)
        self._rules: dict[str, Rule] = {}
        self._rules_at = -math.inf
        # Claims under ``_holder`` whose reply is missing, with the rules at the time of the claim.
        self._unanswered: dict[int, tuple[DueTimer, Rule]] = {}
        self._holder = default_holder()
        self._unreadable: dict[int, float] = {}  # until when to skip these timers

    @property
    def has_unanswered(self) -> bool:
        """Whether the reply to a claim was lost: it has to be sent again."""
        return bool(self._unanswered)

    def read_rules(self, now: float) -> None:
        """Read the rules of the topics if that is due, and renew the node. Raises DatabaseUnavailable."""
        if now - self._rules_at >= RULES_MAX_AGE:
            read = partial(claims.read_rules, self._using, handlers.topics())
            rules = retrying(connections[self._using], read)
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
        read = partial(claims.read_due, self._using, topics, room + 1, late_room, self._skipped())
        timers, read_at = retrying(connections[self._using], read), monotonic()
        readable = [timer for timer in timers if self._can_read(timer, read_at)]
        due = [timer for timer in readable if timer.due_in <= 0]
        late = [timer for timer in due if timer.is_late]
        chosen = ([timer for timer in due if not timer.is_late] + late)[:room]
        pause = min((timer.due_in / 1_000_000 for timer in readable if timer.due_in > 0), default=MAX_PAUSE)
        if len(readable) < len(timers):  # later timers were not read
            pause = min(pause, MIN_PAUSE)
        if late_room < room and len(late) >= late_room:  # there may be more late timers, for later
            pause = min(pause, 5 * MIN_PAUSE)
        return chosen, read_at + min(pause, MAX_PAUSE)

    def claim(self, due: list[DueTimer], send: Callable[..., claims.Answer]) -> claims.Answer:
        """Claim these timers, and repeat claims whose reply was lost, by the rules of their time."""
        self._unanswered.update({timer.pk: (timer, self._rules[timer.topic]) for timer in due})
        claims_sent = self._unanswered.values()
        timers, rules = [timer for timer, _ in claims_sent], {rule.name: rule for _, rule in claims_sent}
        claimed, locked = retrying(connections[self._using], partial(send, timers, rules, self._holder))
        late = {timer.pk for timer in timers if timer.is_late}
        self._rate.take(sum(timer.pk in late for timer in claimed))
        self._holder, self._unanswered = default_holder(), {}
        return claimed, locked

    def _skipped(self) -> list[int]:
        now = monotonic()
        self._unreadable = {pk: until for pk, until in self._unreadable.items() if until > now}
        return list(self._unreadable)

    def _can_read(self, timer: DueTimer, now: float) -> bool:
        """Return whether this node can evaluate the timer's schedule; if not, skip the timer for a while."""
        why = occurrences.unreadable(timer.schedule)
        if why:
            claims.log_unreadable(timer.topic, timer.pk, why)
            self._unreadable[timer.pk] = now + SKIP_UNREADABLE_FOR
        return not why

"""The changes that bring every queue to its server; no I/O.

A queue of a living server is *requested*: it moves when its owner has finished work on it, or is taken over when the
owner is late. A queue without a living owner is assigned at once.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from resourcepool.events import Sentence, sentence_for
from resourcepool.queues.models import Move
from resourcepool.queues.planning.assignment import Member, QueueSnapshot, Strategy
from resourcepool.queues.planning.strategies import plan_within_limits

Action = Move.Action

# The longest time, in seconds, from a request's UPDATE to its COMMIT, as the database server ends a session that is
# idle for longer (``db/transactions.py``).
MAX_COMMIT_DELAY = 10.0


def takeover_after(handover_timeout: float, ttl: float) -> float:
    """Return the seconds for which a living owner keeps a requested queue.

    By then an owner that has not seen the request has stopped by itself: it trusts a check for ``ttl`` seconds, and
    that check may have been just before the request became visible.
    """
    return max(handover_timeout, ttl + MAX_COMMIT_DELAY)


@dataclass(frozen=True, slots=True)
class Change:
    """One step of one queue; ``to``: key of its next server; None: no server."""

    queue: QueueSnapshot
    what: Move.Action
    to: int | None
    reason: Sentence

    @property
    def changes_owner(self) -> bool:
        """Whether it changes the owner, and so the fence."""
        return self.what in (Action.ASSIGNED, Action.HANDED_OVER, Action.TAKEN_OVER, Action.UNASSIGNED)

    @property
    def removes_from_owner(self) -> bool:
        """Whether it takes the queue from its owner."""
        return self.changes_owner or self.what is Action.REMOVED


def plan(
    queues: Sequence[QueueSnapshot],
    servers: Sequence[Member],
    strategy: Strategy,
    handover_timeout: float,
    *,
    leaving: Collection[int] = (),
) -> list[Change]:
    """Return the changes that bring the queues to the servers that ``strategy`` chooses.

    Args:
        queues: all of the queue group, in order.
        servers: all of the queue group, in the order of their registration.
        handover_timeout: seconds for which a living owner may keep a requested queue.
        leaving: keys of servers that leave, without work in hand.
    """
    by_pk = {server.pk: server for server in servers}
    staying = {pk for pk, server in by_pk.items() if server.keeps_queues} - set(leaving)
    sharing = [server for server in servers if server.pk in staying and not server.is_draining]
    able = {server.pk for server in sharing}
    inputs = [_present(queue, staying, able) for queue in queues if not queue.is_retiring]
    counts = Counter(queue.server for queue in inputs)
    members = [_limited(server, counts) for server in sharing]
    targets, overflow = plan_within_limits(strategy, inputs, members)
    steps = _Steps(by_pk, staying, leaving, counts, overflow, handover_timeout)
    changes = []
    for queue in queues:
        target = None if queue.is_retiring else targets[queue.pk]
        if step := steps.next(queue, target):
            changes.append(Change(queue, step[0], target, step[1]))
    return changes


def hand_over(
    queues: Sequence[QueueSnapshot], servers: Sequence[Member], in_doubt: Collection[int]
) -> list[Change]:
    """Return the changes for queues on which their owner has no work in hand.

    A living requester gets the queue. Otherwise the owner keeps it, unless the request has no requester (the owner
    lacks its labels), or the queue is ``in_doubt``: an earlier release got no reply, so its fence is uncertain.
    """
    takers = {server.pk for server in servers if server.gets_queues}
    changes, finished = [], sentence_for("work_finished")
    for queue in queues:
        if queue.is_retiring:
            changes.append(Change(queue, Action.REMOVED, None, finished))
        elif queue.req in takers:
            changes.append(Change(queue, Action.HANDED_OVER, queue.req, finished))
        elif queue.pk in in_doubt:
            changes.append(Change(queue, Action.UNASSIGNED, None, sentence_for("given_up")))
        elif queue.req is None and queue.requested_ago is not None:
            changes.append(Change(queue, Action.UNASSIGNED, None, finished))
        elif queue.req is not None:
            changes.append(Change(queue, Action.CANCELLED, None, sentence_for("requester_gone")))
    return changes


def _limited(server: Member, counts: Counter[int | None]) -> Member:
    """Return the server as the strategies see it: a spared server has no room for more queues."""
    count = counts[server.pk]
    limit = count if server.limit is None else min(count, server.limit)
    return server if server.is_alive else replace(server, limit=limit)


def _present(queue: QueueSnapshot, staying: Collection[int], able: Collection[int]) -> QueueSnapshot:
    """Return the queue as the strategies see it: only with an owner that stays, and a requester that may get it."""
    owner = queue.cur if queue.cur in staying else None
    requester = queue.req if owner is not None and queue.req in able else None
    return queue if (owner, requester) == (queue.cur, queue.req) else replace(queue, cur=owner, req=requester)


def _lacking(queue: QueueSnapshot, owner: Member) -> set[tuple[str, str]]:
    """Return the labels of ``queue`` that its owner lacks; it may keep the queue only if there are none."""
    return set(queue.labels.items()) - set(owner.labels.items())


@dataclass(frozen=True, slots=True)
class _Steps:
    """Finds the next step of each queue towards its target, and the reason for it."""

    servers: Mapping[int, Member]
    staying: Collection[int]
    leaving: Collection[int]
    counts: Counter[int | None]
    overflow: Collection[int]
    handover_timeout: float

    def next(self, queue: QueueSnapshot, target: int | None) -> tuple[Move.Action, Sentence] | None:
        """Return the next action for ``queue`` and the reason; None: no action."""
        owner = self.servers[queue.cur or 0] if queue.cur in self.staying else None
        if owner is None:
            if queue.is_retiring:
                return Action.REMOVED, sentence_for("being_removed")
            if target is None and queue.cur is None:
                return None
            return Action.UNASSIGNED if target is None else Action.ASSIGNED, self._why_unowned(queue)
        is_requested = queue.req is not None or queue.requested_ago is not None
        # It stays with its owner, also if no other server may have it.
        if target == queue.cur or not (target is not None or queue.is_retiring or _lacking(queue, owner)):
            return (Action.CANCELLED, sentence_for("keeps", server=str(owner))) if is_requested else None
        if self._is_overdue(queue, owner):
            if queue.is_retiring:
                return Action.REMOVED, sentence_for("being_removed")
            action = Action.UNASSIGNED if target is None else Action.TAKEN_OVER
            return action, sentence_for("work_not_finished", server=str(owner))
        if queue.is_retiring or (is_requested and queue.req == target):
            return None
        return Action.REQUESTED, self._why_requested(queue, owner, target)

    def _is_overdue(self, queue: QueueSnapshot, owner: Member) -> bool:
        limit = takeover_after(self.handover_timeout, owner.ttl)
        return queue.requested_ago is not None and queue.requested_ago >= limit

    def _why_unowned(self, queue: QueueSnapshot) -> Sentence:
        if queue.cur is None:
            return self._why_not_pinned(queue) or sentence_for("had_no_owner")
        server = self.servers.get(queue.cur)
        if queue.cur in self.leaving:
            return sentence_for("left", server=str(server) if server else "a removed server")
        if server is None:
            return sentence_for("server_gone")
        return sentence_for("presumed_dead", server=str(server), seconds=server.ttl)

    def _why_requested(self, queue: QueueSnapshot, owner: Member, target: int | None) -> Sentence:
        if owner.is_draining and target is not None:
            return sentence_for("draining", server=str(owner))
        if missing := _lacking(queue, owner):
            labels = ", ".join(f"{key}={value}" for key, value in sorted(missing))
            return sentence_for("lacks", server=str(owner), labels=labels)
        taker = self.servers[target or 0]
        if queue.pin and queue.pin == taker.name:
            return sentence_for("pinned", server=queue.pin)
        if no_room := self._why_not_pinned(queue):
            return no_room
        counts = {"count": self.counts[queue.cur], "count_taker": self.counts[target]}
        return sentence_for("evens_out", giver=str(owner), taker=str(taker), **counts)

    def _why_not_pinned(self, queue: QueueSnapshot) -> Sentence | None:
        gets_queues = (server.name for server in self.servers.values() if server.gets_queues)
        is_full = queue.pk in self.overflow and queue.pin in gets_queues
        return sentence_for("no_room", server=queue.pin) if is_full else None

"""The changes that bring every queue to its server, without I/O (R1.2-R1.5).

A queue of a living server is *asked for*; it moves when its owner has finished its work on it, or is taken over when
the owner is late. A queue without a living owner is assigned at once.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from resourcepool.events import Sentence, sentence_for
from resourcepool.queues.models import Move
from resourcepool.queues.planning.assignment import Member, QueueInput, Strategy
from resourcepool.queues.planning.strategies import with_room

Action = Move.Action

# The longest time, in seconds, from a request's UPDATE to its COMMIT: the database server ends a session that is idle
# for longer (``dialect/transactions.py``).
MAX_COMMIT_DELAY = 10.0


def takeover_after(handover_timeout: float, ttl: float) -> float:
    """Return for how many seconds after a request a living owner keeps its queue.

    It is long enough that an owner which has not seen the request has stopped by itself: it trusts a look for ``ttl``
    seconds, and the look may have been just before the request became visible.
    """
    return max(handover_timeout, ttl + MAX_COMMIT_DELAY)


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """A queue as read: the keys of its owner (``cur``) and of the server that has asked for it (``req``).

    ``asked_ago``: for how many seconds its owner has been asked to give it up; None: it is not.
    """

    pk: int
    queue_id: str
    cur: int | None = None
    req: int | None = None
    fence: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    pin: str = ""
    is_retiring: bool = False
    asked_ago: float | None = None


@dataclass(frozen=True, slots=True)
class ServerSnapshot:
    """A server as read. ``ttl``: after how many seconds without a heartbeat it is judged dead.

    ``is_spared``: its heartbeat is overdue, but it is not judged yet: it keeps its queues and gets no more.
    """

    member: Member
    is_alive: bool = True
    is_draining: bool = False
    ttl: float = 0.0
    is_spared: bool = False

    @property
    def is_there(self) -> bool:
        """Whether it keeps its queues."""
        return self.is_alive or self.is_spared

    @property
    def gets_queues(self) -> bool:
        """Whether it may get queues."""
        return self.is_alive and not self.is_draining


@dataclass(frozen=True, slots=True)
class Change:
    """One step of one queue; ``to`` is None when nobody gets it."""

    queue: QueueSnapshot
    what: Move.Action
    to: int | None
    reason: Sentence

    @property
    def changes_owner(self) -> bool:
        """Whether it changes the owner, and so the fence."""
        return self.what in (Action.ASSIGNED, Action.HANDED_OVER, Action.TAKEN_OVER, Action.UNASSIGNED)

    @property
    def leaves_owner(self) -> bool:
        """Whether it takes the queue from its owner."""
        return self.changes_owner or self.what is Action.REMOVED


def plan(
    queues: Sequence[QueueSnapshot],
    servers: Sequence[ServerSnapshot],
    strategy: Strategy,
    handover_timeout: float,
    *,
    leaving: Collection[int] = (),
) -> list[Change]:
    """Return the changes that bring the queues where ``strategy`` wants them; [] when there is nothing to do.

    Args:
        queues: all of the queue group, in order; ``servers``: all its servers, in the order of their registration.
        drain_within: seconds for which a living owner may keep a queue that was asked for.
        leaving: keys of servers without any work left, which leave.
    """
    by_pk = {server.member.pk: server for server in servers}
    staying = {pk for pk, server in by_pk.items() if server.is_there} - set(leaving)
    sharing = [server for server in servers if server.member.pk in staying and not server.is_draining]
    wanted = [queue for queue in queues if not queue.is_retiring]
    able = {server.member.pk for server in sharing}
    inputs = [_input(queue, staying, able) for queue in wanted]
    counts = Counter(one.server for one in inputs)
    targets, overflow = with_room(strategy, inputs, [_member(server, counts) for server in sharing])
    steps = _Steps(by_pk, staying, leaving, counts, overflow, handover_timeout)
    found = []
    for queue in queues:
        target = None if queue.is_retiring else targets[queue.pk]
        if step := steps.next(queue, target):
            found.append(Change(queue, step[0], target, step[1]))
    return found


def hand_over(
    queues: Sequence[QueueSnapshot], servers: Sequence[ServerSnapshot], in_doubt: Collection[int]
) -> list[Change]:
    """Return the changes for queues on which their owner has no work in hand (R1.5).

    The server that asked gets the queue, if it lives. Otherwise the owner keeps it, unless nobody was to get it (the
    owner lacks its labels), or it is ``in_doubt``: an earlier release got no reply, so its fence is uncertain.
    """
    takers = {server.member.pk: server.member for server in servers if server.gets_queues}
    found, is_finished = [], sentence_for("work_finished")
    for queue in queues:
        if queue.is_retiring:
            found.append(Change(queue, Action.REMOVED, None, is_finished))
        elif queue.req in takers:
            found.append(Change(queue, Action.HANDED_OVER, queue.req, is_finished))
        elif queue.pk in in_doubt:
            found.append(Change(queue, Action.UNASSIGNED, None, sentence_for("given_up")))
        elif queue.req is None and queue.asked_ago is not None:
            found.append(Change(queue, Action.UNASSIGNED, None, is_finished))
        elif queue.req is not None:
            found.append(Change(queue, Action.CANCELLED, None, sentence_for("requester_gone")))
    return found


def _member(server: ServerSnapshot, counts: Counter[int | None]) -> Member:
    """Return it as the strategies see it: a spared server has no room for further queues."""
    member, has = server.member, counts[server.member.pk]
    most = has if member.limit is None else min(has, member.limit)
    return member if server.is_alive else replace(member, limit=most)


def _input(queue: QueueSnapshot, staying: Collection[int], able: Collection[int]) -> QueueInput:
    owner = queue.cur if queue.cur in staying else None
    asked = queue.req if owner is not None and queue.req in able else None
    return QueueInput(queue.pk, asked or owner, owner, queue.labels, queue.pin)


def _lacking(queue: QueueSnapshot, owner: ServerSnapshot) -> set[tuple[str, str]]:
    """Return the labels of ``queue`` that its owner lacks, so that it may not keep the queue."""
    return set(queue.labels.items()) - set(owner.member.labels.items())


@dataclass(frozen=True, slots=True)
class _Steps:
    """The next step of each queue towards its target, and the reason for it."""

    servers: Mapping[int, ServerSnapshot]
    staying: Collection[int]
    leaving: Collection[int]
    counts: Counter[int | None]
    overflow: Collection[int]
    handover_timeout: float

    def next(self, queue: QueueSnapshot, target: int | None) -> tuple[Move.Action, Sentence] | None:
        """Return what to do with ``queue``, and why; None: nothing."""
        owner = self.servers[queue.cur or 0] if queue.cur in self.staying else None
        if owner is None:
            if queue.is_retiring:
                return Action.REMOVED, sentence_for("being_removed")
            if target is None and queue.cur is None:
                return None
            return Action.UNASSIGNED if target is None else Action.ASSIGNED, self._why_free(queue)
        is_asked = queue.req is not None or queue.asked_ago is not None
        # It stays where it is, also if no other server may have it.
        if target == queue.cur or not (target is not None or queue.is_retiring or _lacking(queue, owner)):
            return (Action.CANCELLED, sentence_for("keeps", server=str(owner.member))) if is_asked else None
        if self._is_overdue(queue, owner):
            if queue.is_retiring:
                return Action.REMOVED, sentence_for("being_removed")
            taken = Action.UNASSIGNED if target is None else Action.TAKEN_OVER
            return taken, sentence_for("work_not_finished", server=str(owner.member))
        if queue.is_retiring or (is_asked and queue.req == target):
            return None
        return Action.REQUESTED, self._why_asked(queue, owner, target)

    def _is_overdue(self, queue: QueueSnapshot, owner: ServerSnapshot) -> bool:
        return queue.asked_ago is not None and queue.asked_ago >= takeover_after(
            self.handover_timeout, owner.ttl
        )

    def _why_free(self, queue: QueueSnapshot) -> Sentence:
        if queue.cur is None:
            return self._why_not_pinned(queue) or sentence_for("had_no_owner")
        server = self.servers.get(queue.cur)
        if queue.cur in self.leaving:
            return sentence_for("left", server=str(server.member) if server else "a server that is gone")
        if server is None:
            return sentence_for("server_gone")
        return sentence_for("presumed_dead", server=str(server.member), seconds=server.ttl)

    def _why_asked(self, queue: QueueSnapshot, owner: ServerSnapshot, target: int | None) -> Sentence:
        if owner.is_draining and target is not None:
            return sentence_for("draining", server=str(owner.member))
        if missing := _lacking(queue, owner):
            labels = ", ".join(f"{key}={value}" for key, value in sorted(missing))
            return sentence_for("lacks", server=str(owner.member), labels=labels)
        taker = self.servers[target or 0].member
        if queue.pin and queue.pin == taker.name:
            return sentence_for("pinned", server=queue.pin)
        if no_room := self._why_not_pinned(queue):
            return no_room
        counts = {"count": self.counts[queue.cur], "count_taker": self.counts[target]}
        return sentence_for("evens_out", giver=str(owner.member), taker=str(taker), **counts)

    def _why_not_pinned(self, queue: QueueSnapshot) -> Sentence | None:
        gets_queues = (server.member.name for server in self.servers.values() if server.gets_queues)
        is_full = queue.pk in self.overflow and queue.pin in gets_queues
        return sentence_for("no_room", server=queue.pin) if is_full else None

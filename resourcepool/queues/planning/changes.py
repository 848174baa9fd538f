"""The changes that bring every queue to its server, without I/O (R1.2-R1.5).

A queue of a living server is *asked for*; it moves when that server has finished its work on it, or is taken over when
the server is late. A queue without a living owner is assigned at once.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from resourcepool.events import Sentence, say
from resourcepool.queues.models import Move
from resourcepool.queues.planning.assignment import Member, QueueInput, Strategy
from resourcepool.queues.planning.strategies import with_room

What = Move.What

# Maximum seconds from a request's UPDATE to its COMMIT: the server ends a session that stands still for longer
# (``dialect/brief.py``; MySQL does not).
COMMITS_WITHIN = 10.0


def takeover_after(drain_within: float, ttl: float) -> float:
    """Return for how many seconds after a request a living owner keeps its queue.

    Always so long that an owner which has not heard of the request has stopped by itself: it relies on a look for
    ``ttl`` seconds, and the look may have been just before the request became visible.
    """
    return max(drain_within, ttl + COMMITS_WITHIN)


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """A queue as it is now: its owner (``cur``), and the server that has asked for it (``req``), as keys of servers.

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
class Worker:
    """A server as it is now. ``ttl``: after how many seconds without a heartbeat it is judged dead.

    ``is_spared``: its heartbeat is overdue by that, but it is not judged yet: it keeps its queues and gets no more.
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
    what: Move.What
    to: int | None
    reason: Sentence

    @property
    def changes_owner(self) -> bool:
        """Whether it gives the queue another owner, and so another fence."""
        return self.what in (What.ASSIGNED, What.HANDED_OVER, What.TAKEN_OVER, What.FREED)

    @property
    def leaves_owner(self) -> bool:
        """Whether it takes the queue from its owner."""
        return self.changes_owner or self.what is What.REMOVED


def plan(
    queues: Sequence[QueueSnapshot],
    workers: Sequence[Worker],
    strategy: Strategy,
    drain_within: float,
    *,
    leaving: Collection[int] = (),
) -> list[Change]:
    """Return the changes that bring the queues where ``strategy`` wants them; [] when there is nothing to do.

    Args:
        queues: all of the task type, in order; ``workers``: all its servers, in the order of their registration.
        drain_within: seconds for which a living owner may keep a queue that was asked for.
        leaving: keys of servers without any work left, which leave.
    """
    by_pk = {worker.member.pk: worker for worker in workers}
    staying = {pk for pk, worker in by_pk.items() if worker.is_there} - set(leaving)
    sharing = [worker for worker in workers if worker.member.pk in staying and not worker.is_draining]
    wanted = [queue for queue in queues if not queue.is_retiring]
    able = {worker.member.pk for worker in sharing}
    inputs = [_input(queue, staying, able) for queue in wanted]
    counts = Counter(one.server for one in inputs)
    targets, overflow = with_room(strategy, inputs, [_member(worker, counts) for worker in sharing])
    why = _Reasons(by_pk, set(leaving), counts, overflow)
    found = []
    for queue in queues:
        target = None if queue.is_retiring else targets[queue.pk]
        is_to_go = target is not None or queue.is_retiring or bool(_lacking(queue, by_pk.get(queue.cur or 0)))
        what = _step(queue, target, staying, is_to_go)
        if what in (None, What.REQUESTED) and is_to_go and _is_overdue(queue, by_pk, drain_within, staying):
            taken = What.FREED if target is None else What.TAKEN_OVER
            what = What.REMOVED if queue.is_retiring else taken
        if what is not None:
            found.append(Change(queue, what, target, why.of(queue, what, target)))
    return found


def hand_over(
    queues: Sequence[QueueSnapshot], workers: Sequence[Worker], doubtful: Collection[int]
) -> list[Change]:
    """Return the changes for queues whose owner has no work in hand on them (R1.5).

    The server that asked gets the queue, if it lives. Otherwise the owner keeps it, unless it was asked back for nobody
    (the owner lacks its labels), or is ``doubtful``: an earlier release got no reply, so the old fence cannot be relied
    on.
    """
    takers = {worker.member.pk: worker.member for worker in workers if worker.gets_queues}
    found, is_finished = [], say("work_finished")
    for queue in queues:
        if queue.is_retiring:
            found.append(Change(queue, What.REMOVED, None, is_finished))
        elif queue.req in takers:
            found.append(Change(queue, What.HANDED_OVER, queue.req, is_finished))
        elif queue.pk in doubtful:
            found.append(Change(queue, What.FREED, None, say("given_up")))
        elif queue.req is None and queue.asked_ago is not None:
            found.append(Change(queue, What.FREED, None, is_finished))
        elif queue.req is not None:
            found.append(Change(queue, What.CANCELLED, None, say("asker_gone")))
    return found


def _member(worker: Worker, counts: Counter[int | None]) -> Member:
    """Return it in the form the strategies use: a spared server has room for the queues it already has."""
    member, has = worker.member, counts[worker.member.pk]
    most = has if member.limit is None else min(has, member.limit)
    return member if worker.is_alive else replace(member, limit=most)


def _input(queue: QueueSnapshot, staying: Collection[int], able: Collection[int]) -> QueueInput:
    owner = queue.cur if queue.cur in staying else None
    asked = queue.req if owner is not None and queue.req in able else None
    return QueueInput(queue.pk, asked or owner, owner, queue.labels, queue.pin)


def _lacking(queue: QueueSnapshot, owner: Worker | None) -> set[tuple[str, str]]:
    """Return the labels of ``queue`` that its owner lacks, so that it may not keep the queue."""
    return set() if owner is None else set(queue.labels.items()) - set(owner.member.labels.items())


def _step(
    queue: QueueSnapshot, target: int | None, staying: Collection[int], is_to_go: bool
) -> Move.What | None:
    if queue.is_retiring:
        return None if queue.cur in staying else What.REMOVED
    if queue.cur not in staying:
        if target is not None:
            return What.ASSIGNED
        return None if queue.cur is None else What.FREED
    is_asked = queue.req is not None or queue.asked_ago is not None
    if target == queue.cur or not is_to_go:  # it stays where it is, also if no other server may have it
        return What.CANCELLED if is_asked else None
    if target is None:  # asked back for nobody
        return None if is_asked and queue.req is None else What.REQUESTED
    return None if queue.req == target else What.REQUESTED


def _is_overdue(
    queue: QueueSnapshot, workers: Mapping[int, Worker], drain_within: float, staying: Collection[int]
) -> bool:
    if queue.asked_ago is None or queue.cur not in staying:
        return False
    return queue.asked_ago >= takeover_after(drain_within, workers[queue.cur or 0].ttl)


@dataclass(frozen=True, slots=True)
class _Reasons:
    """The reasons why queues move."""

    workers: Mapping[int, Worker]
    leaving: Collection[int]
    counts: Counter[int | None]
    overflow: Collection[int]

    def of(self, queue: QueueSnapshot, what: Move.What, target: int | None) -> Sentence:
        """Return why ``queue`` takes this step."""
        owner = self.workers.get(queue.cur or 0)
        is_there = owner is not None and owner.is_there and queue.cur not in self.leaving
        if what is What.TAKEN_OVER or (what is What.FREED and is_there):
            return say("work_not_finished", server=self._name(queue.cur))
        if queue.is_retiring:
            return say("being_removed")
        if what is What.CANCELLED:
            return say("keeps", server=self._name(queue.cur))
        if what is What.REQUESTED:
            return self._why_asked(queue, target)
        return self._why_free(queue)

    def _why_free(self, queue: QueueSnapshot) -> Sentence:
        if queue.cur is None:
            return self._why_not_pinned(queue) or say("had_nobody")
        if queue.cur in self.leaving:
            return say("left", server=self._name(queue.cur))
        worker = self.workers.get(queue.cur)
        if worker is None:
            return say("server_gone")
        return say("judged_dead", server=str(worker.member), seconds=worker.ttl)

    def _why_asked(self, queue: QueueSnapshot, target: int | None) -> Sentence:
        worker = self.workers[queue.cur or 0]
        missing = _lacking(queue, worker)
        if worker.is_draining and target is not None:
            return say("draining", server=str(worker.member))
        if missing:
            labels = ", ".join(f"{key}={value}" for key, value in sorted(missing))
            return say("lacks", server=str(worker.member), labels=labels)
        if queue.pin and queue.pin == self.workers[target or 0].member.name:
            return say("pinned", server=queue.pin)
        if no_room := self._why_not_pinned(queue):
            return no_room
        counts = {"count": self.counts[queue.cur], "count_taker": self.counts[target]}
        return say("evens_out", giver=str(worker.member), taker=self._name(target), **counts)

    def _why_not_pinned(self, queue: QueueSnapshot) -> Sentence | None:
        gets_queues = (worker.member.name for worker in self.workers.values() if worker.gets_queues)
        is_full = queue.pk in self.overflow and queue.pin in gets_queues
        return say("no_room", server=queue.pin) if is_full else None

    def _name(self, pk: int | None) -> str:
        worker = self.workers.get(pk or 0)
        return str(worker.member) if worker else "a server that is gone"

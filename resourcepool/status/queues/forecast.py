"""A preview of the moves if servers left or joined now; changes nothing."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from resourcepool.events import sentence_for
from resourcepool.queues.administration import preview
from resourcepool.queues.models import Move
from resourcepool.queues.planning.assignment import Member
from resourcepool.queues.planning.changes import Change, QueueSnapshot, ServerSnapshot
from resourcepool.status.queues.problems import PossibleOwner, why_no_other, why_no_owner

FIRST = 5  # queues that are named


@dataclass(frozen=True, slots=True)
class ForecastMove:
    """One queue that would move; "" is nobody."""

    queue_id: str
    what: Move.Action
    from_server: str
    to_server: str
    reason: str


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """How many queues a server has, and would have once all are handed over; "" is nobody."""

    server: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class UnownedQueues:
    """How many queues nobody would get for one reason, and the first of them."""

    why: str
    count: int
    first: Sequence[str]


@dataclass(frozen=True, slots=True)
class Forecast:
    """The changes, the number of queues, and the queues that nobody would get, with the reason.

    ``staying``: the queues that would stay with draining servers.
    """

    changes: Sequence[ForecastMove]
    shares: Sequence[QueueCounts]
    queues: int
    unowned: Sequence[UnownedQueues] = ()
    staying: Sequence[UnownedQueues] = ()


def forecast(
    queue_group: str,
    *,
    without: Sequence[str] = (),
    joining: Sequence[Member] = (),
    draining: Sequence[str] = (),
    removing: Sequence[str] = (),
) -> Forecast:
    """Return the changes if these servers left, joined or drained; see ``preview`` for arguments and errors."""
    changes, workers, queues = preview(
        queue_group, without=without, joining=joining, draining=draining, removing=removing
    )
    names = {worker.member.pk: name_of(worker.member) for worker in workers}
    foreseen = [
        _foreseen(change, names, joining) for change in [*changes, *_asked_back(queues, changes, removing)]
    ]
    would = shares(queues, changes, workers)
    staying = [one for one in workers if one.is_alive and not _is_one_of(one.member, without)]
    without_owner = unowned(queues, changes, staying)
    return Forecast(foreseen, would, len(queues), without_owner, kept(queues, changes, staying))


def unowned(
    queues: Iterable[QueueSnapshot], changes: Iterable[Change], staying: Iterable[ServerSnapshot]
) -> list[UnownedQueues]:
    """Return the queues that nobody gets, by reason, the most frequent reason first."""
    return _without_another(queues, changes, staying, {None})


def kept(
    queues: Iterable[QueueSnapshot], changes: Iterable[Change], staying: Iterable[ServerSnapshot]
) -> list[UnownedQueues]:
    """Return the queues that stay with draining servers, and why no other server gets them."""
    there = list(staying)
    return _without_another(queues, changes, there, {one.member.pk for one in there if one.is_draining})


def _without_another(
    queues: Iterable[QueueSnapshot],
    changes: Iterable[Change],
    staying: Iterable[ServerSnapshot],
    ends_at: Collection[int | None],
) -> list[UnownedQueues]:
    steps = {change.queue.pk: change for change in changes}
    wanted = [queue for queue in queues if not queue.is_retiring]
    ends = {queue.pk: _ends_at(queue, steps.get(queue.pk)) for queue in wanted}
    after = Counter(ends.values())
    candidates = {worker.member.pk: _possible_owner(worker, after[worker.member.pk]) for worker in staying}
    found: dict[str, list[str]] = {}
    whys: dict[object, str] = {}
    for queue in wanted:
        if (end := ends[queue.pk]) in ends_at:
            kind = end, queue.pin, *sorted(queue.labels.items())
            others = [one for pk, one in candidates.items() if pk != end]
            explain = why_no_owner if end is None else why_no_other
            why = whys.get(kind) or whys.setdefault(kind, explain(queue.labels, others, queue.pin))
            found.setdefault(why, []).append(queue.queue_id)
    listed = [UnownedQueues(why, len(ids), ids[:FIRST]) for why, ids in found.items()]
    return sorted(listed, key=lambda one: -one.count)


def _asked_back(
    queues: Iterable[QueueSnapshot], changes: Iterable[Change], removing: Collection[str]
) -> list[Change]:
    """Return the requests to living servers for the queues that are removed."""
    gone, what = {change.queue.pk for change in changes}, Move.Action.REQUESTED
    asked = [queue for queue in queues if queue.queue_id in removing and queue.pk not in gone]
    return [Change(queue, what, None, sentence_for("being_removed")) for queue in asked]


def _possible_owner(worker: ServerSnapshot, has: int) -> PossibleOwner:
    limit, name = worker.member.limit, worker.member.name
    return PossibleOwner(worker.member.labels, worker.is_draining, limit is not None and has >= limit, name)


def _is_one_of(member: Member, names: Collection[str]) -> bool:
    return member.pk > 0 and (member.name in names or str(member) in names)


def shares(
    queues: Iterable[QueueSnapshot], changes: Iterable[Change], workers: Iterable[ServerSnapshot]
) -> list[QueueCounts]:
    """Return what each server has, and would have after ``changes`` and all hand-overs; nobody comes last."""
    steps = {change.queue.pk: change for change in changes}
    before: Counter[int | None] = Counter()
    after: Counter[int | None] = Counter()
    for queue in queues:
        before[queue.cur] += 1
        step = steps.get(queue.pk)
        if not (queue.is_retiring or (step and step.what is Move.Action.REMOVED)):
            after[_ends_at(queue, step)] += 1
    known = {worker.member.pk: name_of(worker.member) for worker in workers}
    found = [QueueCounts(name, before.pop(pk, 0), after.pop(pk, 0)) for pk, name in known.items()]
    nobody = QueueCounts("", before.total(), after.total())
    return [*found, nobody] if nobody.before or nobody.after else found


def name_of(member: Member) -> str:
    """Return a server's name for people; one that does not exist yet has no number."""
    return str(member) if member.pk > 0 else _("%s (new)") % member.name


def _ends_at(queue: QueueSnapshot, step: Change | None) -> int | None:
    if step is None:
        return queue.req or (queue.cur if queue.asked_ago is None else None)
    return queue.cur if step.what is Move.Action.CANCELLED else step.to


def _foreseen(change: Change, names: Mapping[int, str], joining: Iterable[Member]) -> ForecastMove:
    reason = change.reason.replaced({str(member): name_of(member) for member in joining})
    ends = (names.get(change.queue.cur or 0, ""), names.get(change.to or 0, ""))
    return ForecastMove(change.queue.queue_id, change.what, *ends, reason)

"""A preview of the moves if servers left, joined or drained now; changes nothing."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from resourcepool.events import sentence_for
from resourcepool.queues.administration import preview
from resourcepool.queues.models import Move
from resourcepool.queues.planning.assignment import Member
from resourcepool.queues.planning.changes import Change, QueueSnapshot, ServerSnapshot
from resourcepool.status.queues.problems import PossibleOwner, why_no_other, why_no_owner
from resourcepool.translation import gettext as _

MAX_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class ForecastMove:
    """One queue that would move; server "": none."""

    queue_id: str
    what: Move.Action
    from_server: str
    to_server: str
    reason: str


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """How many queues a server has, and would have after all hand-overs; server "": unowned queues."""

    server: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class UnownedQueues:
    """The number of queues that no server, or no other server, would get for one reason, and the first of them."""

    why: str
    count: int
    first: Sequence[str]


@dataclass(frozen=True, slots=True)
class Forecast:
    """The changes, the number of queues, and the queues that would be unowned, with the reason.

    ``staying``: the queues that would stay on draining servers.
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
    changes, servers, queues = preview(
        queue_group, without=without, joining=joining, draining=draining, removing=removing
    )
    names = {server.member.pk: name_of(server.member) for server in servers}
    moves = [
        _forecast_move(change, names, joining)
        for change in [*changes, *_removal_requests(queues, changes, removing)]
    ]
    counts = shares(queues, changes, servers)
    staying = [server for server in servers if server.is_alive and not _is_named(server.member, without)]
    unowned = unowned_queues(queues, changes, staying)
    return Forecast(moves, counts, len(queues), unowned, undrained_queues(queues, changes, staying))


def unowned_queues(
    queues: Iterable[QueueSnapshot], changes: Iterable[Change], staying: Iterable[ServerSnapshot]
) -> list[UnownedQueues]:
    """Return the queues that no server gets, by reason, the most frequent reason first."""
    return _group_by_reason(queues, changes, staying, {None})


def undrained_queues(
    queues: Iterable[QueueSnapshot], changes: Iterable[Change], staying: Iterable[ServerSnapshot]
) -> list[UnownedQueues]:
    """Return the queues that stay on draining servers, and why no other server gets them."""
    servers = list(staying)
    draining = {server.member.pk for server in servers if server.is_draining}
    return _group_by_reason(queues, changes, servers, draining)


def _group_by_reason(
    queues: Iterable[QueueSnapshot],
    changes: Iterable[Change],
    staying: Iterable[ServerSnapshot],
    owners: Collection[int | None],
) -> list[UnownedQueues]:
    """Return the queues that end up at ``owners``, grouped by the reason why no other server gets them."""
    steps = {change.queue.pk: change for change in changes}
    remaining = [queue for queue in queues if not queue.is_retiring]
    final_owners = {queue.pk: _final_owner(queue, steps.get(queue.pk)) for queue in remaining}
    counts = Counter(final_owners.values())
    candidates = {server.member.pk: _possible_owner(server, counts[server.member.pk]) for server in staying}
    ids_by_reason: dict[str, list[str]] = {}
    reasons: dict[object, str] = {}
    for queue in remaining:
        if (owner := final_owners[queue.pk]) in owners:
            kind = owner, queue.pin, *sorted(queue.labels.items())
            others = [candidate for pk, candidate in candidates.items() if pk != owner]
            explain = why_no_owner if owner is None else why_no_other
            reason = reasons.get(kind) or reasons.setdefault(kind, explain(queue.labels, others, queue.pin))
            ids_by_reason.setdefault(reason, []).append(queue.queue_id)
    groups = [UnownedQueues(reason, len(ids), ids[:MAX_EXAMPLES]) for reason, ids in ids_by_reason.items()]
    return sorted(groups, key=lambda group: -group.count)


def _removal_requests(
    queues: Iterable[QueueSnapshot], changes: Iterable[Change], removing: Collection[str]
) -> list[Change]:
    """Return the requests to living servers for the queues that are removed."""
    changed, action = {change.queue.pk for change in changes}, Move.Action.REQUESTED
    owned = [queue for queue in queues if queue.queue_id in removing and queue.pk not in changed]
    return [Change(queue, action, None, sentence_for("being_removed")) for queue in owned]


def _possible_owner(server: ServerSnapshot, count: int) -> PossibleOwner:
    limit, name = server.member.limit, server.member.name
    is_full = limit is not None and count >= limit
    return PossibleOwner(server.member.labels, server.is_draining, is_full, name)


def _is_named(member: Member, names: Collection[str]) -> bool:
    return member.pk > 0 and (member.name in names or str(member) in names)


def shares(
    queues: Iterable[QueueSnapshot], changes: Iterable[Change], servers: Iterable[ServerSnapshot]
) -> list[QueueCounts]:
    """Return the queue counts of each server before and after ``changes`` and all hand-overs; unowned come last."""
    steps = {change.queue.pk: change for change in changes}
    before: Counter[int | None] = Counter()
    after: Counter[int | None] = Counter()
    for queue in queues:
        before[queue.cur] += 1
        step = steps.get(queue.pk)
        if not (queue.is_retiring or (step and step.what is Move.Action.REMOVED)):
            after[_final_owner(queue, step)] += 1
    names = {server.member.pk: name_of(server.member) for server in servers}
    counts = [QueueCounts(name, before.pop(pk, 0), after.pop(pk, 0)) for pk, name in names.items()]
    unowned = QueueCounts("", before.total(), after.total())
    return [*counts, unowned] if unowned.before or unowned.after else counts


def name_of(member: Member) -> str:
    """Return a server's name for people; a server that does not exist yet has no number."""
    return str(member) if member.pk > 0 else _("%s (new)") % member.name


def _final_owner(queue: QueueSnapshot, step: Change | None) -> int | None:
    if step is None:
        return queue.req or (queue.cur if queue.requested_ago is None else None)
    return queue.cur if step.what is Move.Action.CANCELLED else step.to


def _forecast_move(change: Change, names: Mapping[int, str], joining: Iterable[Member]) -> ForecastMove:
    reason = change.reason.replaced({str(member): name_of(member) for member in joining})
    ends = (names.get(change.queue.cur or 0, ""), names.get(change.to or 0, ""))
    return ForecastMove(change.queue.queue_id, change.what, *ends, reason)

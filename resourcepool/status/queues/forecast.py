"""A preview of the moves if servers left, joined or drained now; changes nothing."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from resourcepool.events import sentence_for
from resourcepool.queues.administration import preview
from resourcepool.queues.models import Move
from resourcepool.queues.planning.assignment import Member, QueueSnapshot
from resourcepool.queues.planning.changes import Change
from resourcepool.translation import gettext as _


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
class Forecast:
    """The changes, and the number of queues of each server before and after them."""

    changes: Sequence[ForecastMove]
    shares: Sequence[QueueCounts]
    queues: int


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
    names = {server.pk: name_of(server) for server in servers}
    moves = [
        _forecast_move(change, names, joining)
        for change in [*changes, *_removal_requests(queues, changes, removing)]
    ]
    return Forecast(moves, shares(queues, changes, servers), len(queues))


def _removal_requests(
    queues: Iterable[QueueSnapshot], changes: Iterable[Change], removing: Collection[str]
) -> list[Change]:
    """Return the requests to living servers for the queues that are removed."""
    changed, action = {change.queue.pk for change in changes}, Move.Action.REQUESTED
    owned = [queue for queue in queues if queue.queue_id in removing and queue.pk not in changed]
    return [Change(queue, action, None, sentence_for("being_removed")) for queue in owned]


def shares(
    queues: Iterable[QueueSnapshot], changes: Iterable[Change], servers: Iterable[Member]
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
    names = {server.pk: name_of(server) for server in servers}
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

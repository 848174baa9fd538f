"""What would move if servers left or joined now; nothing does."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from resourcepool.queues.assignment import Member
from resourcepool.queues.models import Move
from resourcepool.queues.operating import preview, using_of_queues
from resourcepool.queues.planning import Change, Standing, Worker
from resourcepool.queues.standing import find_task_type, read_queues


@dataclass(frozen=True, slots=True)
class Foreseen:
    """One queue that would move; "" is nobody."""

    queue_id: str
    what: Move.What
    from_server: str
    to_server: str
    reason: str


@dataclass(frozen=True, slots=True)
class Share:
    """How many queues a server has, and would have once all is handed over; "" is nobody."""

    server: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """What would change, and how many queues there are."""

    changes: Sequence[Foreseen]
    shares: Sequence[Share]
    queues: int


def forecast(task_type: str, *, without: Sequence[str] = (), joining: Sequence[Member] = ()) -> Forecast:
    """Return what would change if these servers left or joined; see ``preview`` for the arguments and errors.

    Not promised: that the shares and the changes are of the same moment, when others change queues meanwhile.
    """
    changes, workers = preview(task_type, without=without, joining=joining)
    using = using_of_queues()
    queues = read_queues(find_task_type(task_type, using), using)
    names = {worker.member.pk: name_of(worker.member) for worker in workers}
    foreseen = [_foreseen(change, names, joining) for change in changes]
    return Forecast(foreseen, shares(queues, changes, workers), len(queues))


def shares(queues: Iterable[Standing], changes: Iterable[Change], workers: Iterable[Worker]) -> list[Share]:
    """Return what each server has, and would have after ``changes`` and all hand-overs; nobody comes last."""
    steps = {change.queue.pk: change for change in changes}
    before: Counter[int | None] = Counter()
    after: Counter[int | None] = Counter()
    for queue in queues:
        before[queue.cur] += 1
        step = steps.get(queue.pk)
        if not (queue.is_retiring or (step and step.what is Move.What.REMOVED)):
            after[_ends_at(queue, step)] += 1
    known = {worker.member.pk: name_of(worker.member) for worker in workers}
    found = [Share(name, before.pop(pk, 0), after.pop(pk, 0)) for pk, name in known.items()]
    nobody = Share("", before.total(), after.total())
    return [*found, nobody] if nobody.before or nobody.after else found


def name_of(member: Member) -> str:
    """Return what people call a server; one that is not there yet has no number."""
    return str(member) if member.pk > 0 else _("%s (new)") % member.name


def _ends_at(queue: Standing, step: Change | None) -> int | None:
    if step is None:
        return queue.req or queue.cur
    return queue.cur if step.what is Move.What.CANCELLED else step.to


def _foreseen(change: Change, names: Mapping[int, str], joining: Iterable[Member]) -> Foreseen:
    reason = change.reason
    for member in joining:
        reason = reason.replace(str(member), name_of(member))
    ends = (names.get(change.queue.cur or 0, ""), names.get(change.to or 0, ""))
    return Foreseen(change.queue.queue_id, change.what, *ends, reason)

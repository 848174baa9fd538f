"""Reads the database directly, past the relay."""

from dataclasses import dataclass

from resourcepool.models import Move, Queue, QueueGroup, Server
from resourcepool.queues.administration import create
from tests.chaos.models import Page, Step
from tests.chaos.remains import Remains
from tests.queues.proof.terms import DRAIN, HEARTBEAT, JUDGE_DEAD, QUEUE_GROUP, QUEUES, RELOAD

MOVED = (Move.Action.ASSIGNED, Move.Action.HANDED_OVER, Move.Action.TAKEN_OVER)


def make_rows() -> None:
    create(
        QUEUE_GROUP,
        [str(number) for number in range(QUEUES)],
        heartbeat_every=HEARTBEAT,
        judge_dead_after=JUDGE_DEAD,
        reload_every=RELOAD,
        handover_timeout=DRAIN,
    )
    Page.objects.bulk_create(Page(pk=pk) for pk in Queue.objects.values_list("pk", flat=True))


@dataclass(frozen=True)
class QueueCounts:
    """Queue counts of the living servers. ``is_even``: all queues are assigned evenly, without requests."""

    counts: dict[int, int]
    is_even: bool

    def is_settled(self, servers: int) -> bool:
        return len(self.counts) == servers and self.is_even


def queue_counts() -> QueueCounts:
    counts = dict.fromkeys(Server.objects.alive().values_list("pk", flat=True), 0)
    is_whole = Server.objects.count() == len(counts) and not QueueGroup.objects.get().is_assignment_due
    for cur, req in Queue.objects.values_list("cur_server", "req_server"):
        is_whole = is_whole and cur in counts and req is None
        if cur in counts:
            counts[cur] += 1
    is_even = max(counts.values(), default=0) - min(counts.values(), default=0) <= 1
    return QueueCounts(counts, is_whole and is_even)


def last_move() -> int:
    return Move.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def moved_since(pk: int) -> int:
    """Return how many queues got a server since that move."""
    moves = Move.objects.filter(pk__gt=pk, what__in=MOVED)
    return moves.values_list("queue_pk").distinct().count()


def writes() -> Remains:
    steps = list(Step.objects.order_by("pk").values_list("page", "before", "fence", "mark"))
    return Remains(steps, dict(Page.objects.values_list("pk", "fence")))


def left_behind() -> list[str]:
    """Return the rows that remain although all servers have left."""
    servers = [f"{server} is registered" for server in Server.objects.all()]
    return servers + [f"{queue} has a server" for queue in Queue.objects.exclude(cur_server=None)]

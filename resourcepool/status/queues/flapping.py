"""Queues that change their server again and again: the input of the alarm of flapping."""

from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef, Q, Subquery

from resourcepool.dialect import DbLater
from resourcepool.queues.models import Move, Queue
from resourcepool.status.reading import fetched

MOST_RESTLESS = 10_000
NEWEST = 50_000  # moves
LATELY = 600.0  # seconds
RESTS = 3  # recent changes of owner per queue that are normal

DEPARTURES = (Move.What.ASSIGNED, Move.What.HANDED_OVER, Move.What.TAKEN_OVER, Move.What.FREED)


@dataclass(frozen=True, slots=True)
class Restless:
    """Queues that changed their server too often lately: how many, and the worst of them."""

    queues: int
    worst: str
    changes: int


def restless_of(using: str) -> dict[str, Restless]:
    """Return {task type: its queues that changed their server too often lately}.

    Moves from a server that left are not counted.
    It reads the newest 50,000 moves: more of them within ten minutes still show the fault.
    """
    newest = Subquery(Move.objects.order_by("-pk").values("pk")[:1])
    moves = Move.objects.using(using).filter(at__gt=DbLater(-LATELY), pk__gt=newest - NEWEST)
    is_there = Exists(Queue.objects.using(using).filter(pk=OuterRef("queue_pk")))
    left = Q(from_server="") | Q(reason__code="left")  # in an orderly way
    departures = moves.filter(~left, is_there, what__in=DEPARTURES)
    counted = departures.order_by().values_list("task_type", "queue_id").annotate(changes=Count("pk"))
    worst_first = counted.filter(changes__gt=RESTS).order_by("-changes", "queue_id")[:MOST_RESTLESS]
    found: dict[str, Restless] = {}
    for name, queue_id, changes in fetched(worst_first):
        worst = found.get(name, Restless(0, queue_id, changes))
        found[name] = Restless(worst.queues + 1, worst.worst, worst.changes)
    return found

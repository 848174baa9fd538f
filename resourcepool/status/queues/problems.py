"""What can be wrong with queues: no owner, stuck with a draining server, or flapping between servers."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, Min, OuterRef, Q, Subquery
from django.utils.translation import gettext as _

from resourcepool.dialect import DbLater
from resourcepool.labels import format_labels, printable
from resourcepool.queues.models import Move, Queue
from resourcepool.status.snapshots import fetch_all

MAX_FLAPPING = 10_000
NEWEST = 50_000  # moves; if there are more within ten minutes, these still show the fault
LATELY = 600.0  # seconds
NORMAL_CHANGES = 3  # recent changes of owner per queue that are normal

DEPARTURES = (Move.Action.ASSIGNED, Move.Action.HANDED_OVER, Move.Action.TAKEN_OVER, Move.Action.UNASSIGNED)


@dataclass(frozen=True, slots=True)
class PossibleOwner:
    """A living server. ``is_full``: whether it has as many queues as its limit allows."""

    labels: Mapping[str, str]
    is_draining: bool = False
    is_full: bool = False
    name: str = ""


def why_no_owner(labels: Mapping[str, str], candidates: Iterable[PossibleOwner], pin: str = "") -> str:
    """Return why none of these may have a queue that requires ``labels`` and is pinned to the name ``pin``."""
    there = list(candidates)
    if not there:
        return _("no server is up")
    able = [one for one in there if labels.items() <= one.labels.items()]
    if not able:
        return _lacks(labels, there)
    up = [one for one in able if not one.is_draining]
    if not up:
        return _("every server that may have it is draining")
    if all(one.is_full for one in up):
        no_room = _("pinned to %(server)s, which has no room") % {"server": printable(pin)}
        why = _("every server that may have it has as many queues as its limit allows")
        return f"{no_room}; {why}" if pin in {one.name for one in up if one.name} else why
    return _("the servers have not shared it yet; a transaction may keep its row locked")


def why_no_other(labels: Mapping[str, str], others: Collection[PossibleOwner], pin: str) -> str:
    """Return why none of the ``others`` gets a queue that has an owner; see ``why_no_owner``."""
    return why_no_owner(labels, others, pin) if others else _("no other server is up")


def _lacks(labels: Mapping[str, str], there: Collection[PossibleOwner]) -> str:
    nowhere = {
        key: value for key, value in labels.items() if all(one.labels.get(key) != value for one in there)
    }
    text = _("no living server has %s") if nowhere else _("no living server has all of %s")
    return text % printable(format_labels(nowhere or labels))


@dataclass(frozen=True, slots=True)
class Stuck:
    """How many queues stay with draining servers of a queue group; one of them, its server, and why no other takes it."""

    count: int
    server: str
    queue: str
    why: str


def stuck_of(using: str, alive: Mapping[int, Iterable[Any]]) -> dict[int, Stuck]:
    """Return {queue group: queues that stay with its draining servers}; two statements, and only if there are any.

    Args:
        alive: {primary key of a queue group: the ``ServerStatus`` of its living servers}.
    """
    stuck = {pk: {one.pk: one for one in servers if one.stays} for pk, servers in alive.items()}
    drained = [pk for servers in stuck.values() for pk in servers]
    if not drained:
        return {}
    theirs = Queue.objects.using(using).filter(cur_server__in=drained, requested_at=None).order_by()
    firsts = fetch_all(theirs.values("queue_group").annotate(first=Min("pk")).values_list("first", flat=True))
    rows = theirs.filter(pk__in=firsts).values_list("queue_group", "cur_server", "queue_id", "labels", "pin")
    found = {}
    for pk, owner, queue_id, labels, pin in fetch_all(rows):
        why = why_no_other(labels, [one.as_possible_owner for one in alive[pk] if one.pk != owner], pin)
        count = sum(one.stays for one in stuck[pk].values())
        found[pk] = Stuck(count, str(stuck[pk][owner]), queue_id, why)
    return found


@dataclass(frozen=True, slots=True)
class Flapping:
    """Queues that changed their server too often lately: how many, and the worst of them."""

    queues: int
    worst: str
    changes: int


def flapping_of(using: str) -> dict[str, Flapping]:
    """Return {queue group: its queues that changed their server too often lately}, by its ``NEWEST`` moves.

    Moves from a server that left in an orderly way are not counted.
    """
    newest = Subquery(Move.objects.order_by("-pk").values("pk")[:1])
    moves = Move.objects.using(using).filter(at__gt=DbLater(-LATELY), pk__gt=newest - NEWEST)
    is_there = Exists(Queue.objects.using(using).filter(pk=OuterRef("queue_pk")))
    left = Q(from_server="") | Q(reason__code="left")
    departures = moves.filter(~left, is_there, what__in=DEPARTURES)
    counted = departures.order_by().values_list("queue_group", "queue_id").annotate(changes=Count("pk"))
    worst_first = counted.filter(changes__gt=NORMAL_CHANGES).order_by("-changes", "queue_id")[:MAX_FLAPPING]
    found: dict[str, Flapping] = {}
    for name, queue_id, changes in fetch_all(worst_first):
        worst = found.get(name, Flapping(0, queue_id, changes))
        found[name] = Flapping(worst.queues + 1, worst.worst, worst.changes)
    return found

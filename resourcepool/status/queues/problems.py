"""Problems of queues: no owner, stuck on a draining server, or flapping between servers."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, Min, OuterRef, Q, Subquery

from resourcepool.db.dialect import DbLater
from resourcepool.queues.models import Move, Queue
from resourcepool.status.snapshots import fetch_all
from resourcepool.text import format_labels, printable
from resourcepool.translation import gettext as _

MAX_FLAPPING = 10_000
NEWEST = 50_000  # moves; enough to show the problem, even if there are more within ten minutes
RECENT = 600.0  # seconds
NORMAL_CHANGES = 3  # recent changes of owner per queue that raise no alarm

DEPARTURES = (Move.Action.ASSIGNED, Move.Action.HANDED_OVER, Move.Action.TAKEN_OVER, Move.Action.UNASSIGNED)


@dataclass(frozen=True, slots=True)
class PossibleOwner:
    """A living server. ``is_full``: it has as many queues as its limit allows."""

    labels: Mapping[str, str]
    is_draining: bool = False
    is_full: bool = False
    name: str = ""


def why_no_owner(labels: Mapping[str, str], candidates: Iterable[PossibleOwner], pin: str = "") -> str:
    """Return why no candidate may have a queue that requires ``labels`` and is pinned to the name ``pin``."""
    servers = list(candidates)
    if not servers:
        return _("no server is running")
    able = [server for server in servers if labels.items() <= server.labels.items()]
    if not able:
        return _missing_labels(labels, servers)
    up = [server for server in able if not server.is_draining]
    if not up:
        return _("every server that may have it is draining")
    if all(server.is_full for server in up):
        no_room = _("pinned to %(server)s, which has no room") % {"server": printable(pin)}
        all_full = _("every server that may have it has as many queues as its limit allows")
        return f"{no_room}; {all_full}" if pin in {server.name for server in up if server.name} else all_full
    return _("not assigned yet; a transaction may keep its row locked")


def why_no_other(labels: Mapping[str, str], others: Collection[PossibleOwner], pin: str) -> str:
    """Return why none of the ``others`` gets a queue that has an owner; see ``why_no_owner``."""
    return why_no_owner(labels, others, pin) if others else _("no other server is running")


def _missing_labels(labels: Mapping[str, str], servers: Collection[PossibleOwner]) -> str:
    missing = {
        key: value
        for key, value in labels.items()
        if all(server.labels.get(key) != value for server in servers)
    }
    text = _("no living server has %s") if missing else _("no living server has all of %s")
    return text % printable(format_labels(missing or labels))


@dataclass(frozen=True, slots=True)
class Stuck:
    """The number of queues that stay on draining servers of a queue group; one of them, its server, and the reason."""

    count: int
    server: str
    queue: str
    why: str


def stuck_of(using: str, alive: Mapping[int, Iterable[Any]]) -> dict[int, Stuck]:
    """Return {queue group: queues that stay on its draining servers}; two statements, and only if there are any.

    Args:
        alive: {primary key of a queue group: the ``ServerStatus`` of its living servers}.
    """
    draining = {pk: {one.pk: one for one in servers if one.undrained} for pk, servers in alive.items()}
    servers = [pk for by_pk in draining.values() for pk in by_pk]
    if not servers:
        return {}
    queues = Queue.objects.using(using).filter(cur_server__in=servers, requested_at=None).order_by()
    firsts = fetch_all(queues.values("queue_group").annotate(first=Min("pk")).values_list("first", flat=True))
    rows = queues.filter(pk__in=firsts).values_list("queue_group", "cur_server", "queue_id", "labels", "pin")
    stuck = {}
    for pk, owner, queue_id, labels, pin in fetch_all(rows):
        why = why_no_other(labels, [one.as_possible_owner for one in alive[pk] if one.pk != owner], pin)
        count = sum(server.undrained for server in draining[pk].values())
        stuck[pk] = Stuck(count, str(draining[pk][owner]), queue_id, why)
    return stuck


@dataclass(frozen=True, slots=True)
class Flapping:
    """Queues that changed their server too often recently: their number, and the worst of them."""

    queues: int
    worst: str
    changes: int


def flapping_of(using: str) -> dict[str, Flapping]:
    """Return {queue group: its queues that changed their server too often recently}, from the ``NEWEST`` moves.

    Moves from a server that has left are not counted.
    """
    newest = Subquery(Move.objects.order_by("-pk").values("pk")[:1])
    moves = Move.objects.using(using).filter(at__gt=DbLater(-RECENT), pk__gt=newest - NEWEST)
    still_exists = Exists(Queue.objects.using(using).filter(pk=OuterRef("queue_pk")))
    is_orderly = Q(from_server="") | Q(reason__code="left")
    departures = moves.filter(~is_orderly, still_exists, what__in=DEPARTURES)
    counted = departures.order_by().values_list("queue_group", "queue_id").annotate(changes=Count("pk"))
    worst_first = counted.filter(changes__gt=NORMAL_CHANGES).order_by("-changes", "queue_id")[:MAX_FLAPPING]
    flapping: dict[str, Flapping] = {}
    for name, queue_id, changes in fetch_all(worst_first):
        worst = flapping.get(name, Flapping(0, queue_id, changes))
        flapping[name] = Flapping(worst.queues + 1, worst.worst, worst.changes)
    return flapping

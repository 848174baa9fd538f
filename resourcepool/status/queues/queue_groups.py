"""The state of each queue group: its settings, its servers with their queues, and queues without an owner.

Five statements for all queue groups together; one more if there are servers and some queues have no owner, and two if
a draining server keeps some.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from django.db.models import Count, Exists, F, Min, OuterRef, Q
from django.utils.translation import gettext_noop as _

from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.queues.models import Move, Queue, QueueGroup, Server
from resourcepool.queues.queries import find_queue_group, using_of_queues
from resourcepool.status.queues.problems import (
    Flapping,
    PossibleOwner,
    Stuck,
    flapping_of,
    stuck_of,
    why_no_owner,
)
from resourcepool.status.snapshots import Since, Until, fetch_all

MAX_QUEUE_GROUPS = 200
MAX_SERVERS = 5_000  # of all queue groups together

OF_SERVER = ("pk", "name", "holder", "state", "weight", "labels", "limit", "ttl", "in_hand")
INTERVALS = ("heartbeat_every", "judge_dead_after", "reload_every", "handover_timeout")
OF_QUEUE_GROUP = ("pk", "name", "strategy", *INTERVALS, "is_paused", "generation", "assigned_by")
OF_A_SERVERS_QUEUES = ("queues", "asked_for", "longest_asked")


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One server; durations in seconds, by the database's clock.

    Attributes:
        expires_in: until it is judged dead, unless its heartbeat comes; negative: it is overdue.
        registered: how long ago it registered.
        idle: for how long it has had no queue; None: it has one.
        stirred: for how long no code in it has begun work, or asked for some; None: unknown, or not required.
        in_hand: how many queues are worked on.
        queues: how many it has; ``asked_for``: of these, how many should go to other servers, and ``longest_asked``:
            for how long the first of them has been asked for; None: none is.
        awaits: how many it has asked for.
    """

    pk: int
    name: str
    holder: str
    state: str
    weight: int
    labels: Mapping[str, str]
    limit: int | None
    ttl: float
    expires_in: float
    registered: float
    idle: float | None
    last_activity: float | None = None
    in_hand: int = 0
    queues: int = 0
    asked_for: int = 0
    longest_asked: float | None = None
    awaits: int = 0

    ALSO: ClassVar = ("is_alive", "heartbeat")

    def __str__(self) -> str:
        return f"{self.name} #{self.pk}"

    @property
    def is_alive(self) -> bool:
        """Whether its heartbeat came in time."""
        return self.expires_in > 0

    @property
    def is_draining(self) -> bool:
        """Whether it should give up all its queues."""
        return self.state == Server.State.DRAINING

    @property
    def stays(self) -> int:
        """How many queues it should give up that nobody has asked for."""
        return self.queues - self.asked_for if self.is_draining else 0

    @property
    def as_possible_owner(self) -> PossibleOwner:
        """The properties that decide which queues it may have, for ``why_no_owner``."""
        coming = self.queues - self.asked_for + self.awaits
        is_full = self.limit is not None and coming >= self.limit
        return PossibleOwner(self.labels, self.is_draining, is_full, self.name)

    @property
    def heartbeat(self) -> float:
        """How long ago its last heartbeat was."""
        return max(0.0, self.ttl - self.expires_in)


@dataclass(frozen=True, slots=True)
class QueueGroupStatus:
    """One queue group at one moment of the database's clock; durations in seconds.

    Attributes:
        assigned: how long ago queues or servers changed last; None: never. ``assigned_by``: through whom.
        queues: how many there are; ``retiring``: of these, how many are being removed.
        unowned: how many have no living server; ``unowned_for``: for how long the first of them has had none, counted
            from when it was added or freed, or from its server's last heartbeat; None: all have one.
        unowned_one: the first of these, and ``unowned_why``: why nobody gets it; "": not looked for.
        asked_for: how many should go to another server, or be removed.
        was_served: whether any of the queues ever had a server.
        stuck: the queues that stay with draining servers; None: there are none.
        restless: None: no queue changes its server all the time.
    """

    pk: int
    name: str
    strategy: str
    heartbeat_every: float
    judge_dead_after: float
    reload_every: float
    handover_timeout: float
    is_paused: bool
    generation: int
    assigned: float | None
    assigned_by: str
    queues: int = 0
    retiring: int = 0
    unowned: int = 0
    unowned_for: float | None = None
    unowned_one: str = ""
    unowned_why: str = ""
    asked_for: int = 0
    was_served: bool = False
    flapping: Flapping | None = None
    stuck: Stuck | None = None
    servers: Sequence[ServerStatus] = ()

    @property
    def alive(self) -> list[ServerStatus]:
        """The servers that are not judged dead."""
        return [server for server in self.servers if server.is_alive]


def queue_groups(names: Iterable[str] | None = None) -> list[QueueGroupStatus]:
    """Return the state of the queue groups, by name: those of these ``names``, or the first 200.

    Raises:
        DatabaseUnavailable, NotMigrated: nothing is known.
    """
    using = using_of_queues()
    rows = QueueGroup.objects.using(using).order_by("name")
    if names is not None:
        rows = rows.filter(name__in=list(names))
    was_served = Exists(Move.objects.using(using).filter(queue_group=OuterRef("name")))
    columns = rows.values(*OF_QUEUE_GROUP, assigned=Since("assigned_at"), was_served=was_served)
    found = fetch_all(columns[:MAX_QUEUE_GROUPS])
    if not found:
        return []
    pks = [row["pk"] for row in found]
    groups, awaits, servers = _groups(using, pks), _awaits(using, pks), _servers(using, pks)
    flapping = flapping_of(using)
    stand = [
        _status(row, groups.get(row["pk"], []), servers.get(row["pk"], []), awaits, flapping.get(row["name"]))
        for row in found
    ]
    stuck, unowned = stuck_of(using, {one.pk: one.alive for one in stand}), _first_unowned(using, stand, groups)
    return [replace(one, stuck=stuck.get(one.pk), **unowned.get(one.pk, {})) for one in stand]


def queue_group(name: str) -> QueueGroupStatus:
    """Return the state of one queue group; raises BadOption, which names the existing ones."""
    found = queue_groups([find_queue_group(name, using_of_queues()).name])
    if not found:  # it was deleted in between
        raise BadOption("queue_group", name, because=Sentence(_("it was there a moment ago")))
    return found[0]


def _status(
    row: dict[str, Any],
    groups: Sequence[dict[str, Any]],
    servers: Sequence[dict[str, Any]],
    awaits: Mapping[int, int],
    flapping: Flapping | None,
) -> QueueGroupStatus:
    has = {group["server"]: {name: group[name] for name in OF_A_SERVERS_QUEUES} for group in groups}
    known = {
        one["pk"]: ServerStatus(**one, **has.get(one["pk"], {}), awaits=awaits.get(one["pk"], 0))
        for one in servers
    }
    orphaned = [group for group in groups if not ((owner := known.get(group["server"])) and owner.is_alive)]
    row["was_served"] |= any(owner is not None for owner in has)
    # Since the last heartbeat of the server that died, or since they lost their server.
    spans = [
        owner.heartbeat if (owner := known.get(group["server"])) else group["had_for"] for group in orphaned
    ]
    return QueueGroupStatus(
        **row,
        queues=sum(group["queues"] for group in groups),
        retiring=sum(group["retiring"] for group in groups),
        unowned=sum(group["queues"] for group in orphaned),
        unowned_for=max((span for span in spans if span is not None), default=None),
        asked_for=sum(group["asked_for"] for group in groups),
        flapping=flapping,
        servers=list(known.values()),
    )


def _first_unowned(
    using: str, stand: Sequence[QueueGroupStatus], groups: Mapping[int, Sequence[dict[str, Any]]]
) -> dict[int, dict[str, Any]]:
    """Return, of each queue group with servers and unowned queues, the first of these and why nobody has it."""
    alive = {one.pk: {server.pk: server for server in one.alive} for one in stand if one.unowned and one.alive}
    firsts = [
        min(group["first"] for group in groups[pk] if group["server"] not in servers)
        for pk, servers in alive.items()
    ]
    if not firsts:
        return {}
    rows = Queue.objects.using(using).filter(pk__in=firsts)
    return {
        pk: {
            "unowned_one": queue_id,
            "unowned_why": why_no_owner(
                labels, [server.as_possible_owner for server in alive[pk].values()], pin
            ),
        }
        for pk, queue_id, labels, pin in fetch_all(rows.values_list("queue_group", "queue_id", "labels", "pin"))
    }


def _groups(using: str, pks: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    """Count the queues of each server (None: nobody) by queue group; ``first``: the key of the oldest."""
    rows = Queue.objects.using(using).filter(queue_group__in=pks).order_by()
    counted = rows.values("queue_group", server=F("cur_server")).annotate(
        queues=Count("pk"),
        retiring=Count("pk", filter=Q(is_retiring=True)),
        first=Min("pk"),
        asked_for=Count("requested_at"),
        had_for=Since(Min("since")),
        longest_asked=Since(Min("requested_at")),
    )
    return _by_queue_group(counted)


def _awaits(using: str, pks: Sequence[int]) -> dict[int, int]:
    rows = Queue.objects.using(using).filter(queue_group__in=pks, requested_at__isnull=False)
    counted = rows.exclude(req_server=None).order_by().values_list("req_server").annotate(Count("pk"))
    return dict(fetch_all(counted))


def _servers(using: str, pks: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    rows = Server.objects.using(using).filter(queue_group__in=pks).order_by("pk")
    columns = rows.values(
        "queue_group",
        *OF_SERVER,
        expires_in=Until("busy_before"),
        registered=Since("registered_at"),
        idle=Since("idle_since"),
        last_activity=Since("last_activity_at"),
    )
    return _by_queue_group(columns[:MAX_SERVERS])


def _by_queue_group(rows: Any) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    for row in fetch_all(rows):
        found.setdefault(row.pop("queue_group"), []).append(row)
    return found

"""The status of each queue group: its settings, its servers with their queues, and unowned queues.

Five statements for all queue groups together; one more if there are servers and unowned queues, and two more if queues
stay on a draining server.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from django.db.models import Count, Exists, F, Min, OuterRef, Q

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
from resourcepool.status.times import ago
from resourcepool.translation import gettext, gettext_noop as _

MAX_QUEUE_GROUPS = 200
MAX_SERVERS = 5_000  # of all queue groups together

SERVER_COLUMNS = ("pk", "name", "holder", "state", "weight", "labels", "limit", "ttl", "in_hand")
INTERVALS = ("heartbeat_every", "judge_dead_after", "reload_every", "handover_timeout")
QUEUE_GROUP_COLUMNS = ("pk", "name", "strategy", *INTERVALS, "is_paused", "generation", "assigned_by")
QUEUE_COUNTS = ("queues", "asked_for", "longest_asked")


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One server; durations in seconds, by the database's clock.

    Attributes:
        expires_in: until it is presumed dead, unless its heartbeat comes; negative: since then.
        registered: how long ago it registered.
        idle: how long it has had no queue; None: it has one.
        last_activity: how long ago its code last began work or asked for it; None: unknown, or not expected.
        in_hand: how many queues it is working on.
        queues: how many it has; ``asked_for``: of these, how many are requested, and ``longest_asked``: how long the
            first of them has been requested; None: none is.
        awaits: how many it has requested.
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
        """Whether it is not presumed dead."""
        return self.expires_in > 0

    @property
    def is_draining(self) -> bool:
        """Whether it should hand over all its queues."""
        return self.state == Server.State.DRAINING

    @property
    def undrained(self) -> int:
        """How many queues it should hand over that no server has requested."""
        return self.queues - self.asked_for if self.is_draining else 0

    @property
    def as_possible_owner(self) -> PossibleOwner:
        """The properties that decide which queues it may have, for ``why_no_owner``."""
        count = self.queues - self.asked_for + self.awaits
        is_full = self.limit is not None and count >= self.limit
        return PossibleOwner(self.labels, self.is_draining, is_full, self.name)

    @property
    def heartbeat(self) -> float:
        """How long ago its last heartbeat was."""
        return max(0.0, self.ttl - self.expires_in)


@dataclass(frozen=True, slots=True)
class QueueGroupStatus:
    """One queue group at one moment of the database's clock; durations in seconds.

    Attributes:
        assigned: how long ago queues or servers changed last; None: never. ``assigned_by``: the server or operator.
        queues: how many it has; ``retiring``: of these, how many are being removed.
        unowned: how many have no living server; ``unowned_for``: how long the first of them has had none, counted from
            when it was added or unassigned, or from its server's last heartbeat; None: all have one.
        unowned_one: the first of these; ``unowned_why``: why no server gets it; "": not determined.
        asked_for: how many are requested by another server, or are to be removed.
        was_served: whether any of the queues ever had a server.
        stuck: the queues that stay on draining servers; None: there are none.
        flapping: the queues that change their server too often; None: there are none.
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
        """The servers that are not presumed dead."""
        return [server for server in self.servers if server.is_alive]

    @property
    def last_change(self) -> str:
        """When queues or servers changed last, and by whom, for people."""
        if self.assigned is None:
            return gettext("never")
        return gettext("%(ago)s, by %(by)s") % {"ago": ago(self.assigned), "by": self.assigned_by or "-"}


def queue_groups(names: Iterable[str] | None = None, *, flaps: bool = True) -> list[QueueGroupStatus]:
    """Return the status of the queue groups with these ``names``, or of the first 200 by name.

    Args:
        flaps: whether to look for queues that change their server too often.

    Raises:
        DatabaseUnavailable, NotMigrated: the status cannot be read.
    """
    using = using_of_queues()
    rows = QueueGroup.objects.using(using).order_by("name")
    if names is not None:
        rows = rows.filter(name__in=list(names))
    was_served = Exists(Move.objects.using(using).filter(queue_group=OuterRef("name")))
    columns = rows.values(*QUEUE_GROUP_COLUMNS, assigned=Since("assigned_at"), was_served=was_served)
    fetched_rows = fetch_all(columns[:MAX_QUEUE_GROUPS])
    if not fetched_rows:
        return []
    pks = [row["pk"] for row in fetched_rows]
    groups, awaits, servers = _groups(using, pks), _awaits(using, pks), _servers(using, pks)
    flapping = flapping_of(using) if flaps else {}
    statuses = [
        _status(row, groups.get(row["pk"], []), servers.get(row["pk"], []), awaits, flapping.get(row["name"]))
        for row in fetched_rows
    ]
    stuck = stuck_of(using, {status.pk: status.alive for status in statuses})
    unowned = _first_unowned(using, statuses, groups)
    return [replace(status, stuck=stuck.get(status.pk), **unowned.get(status.pk, {})) for status in statuses]


def queue_group(name: str) -> QueueGroupStatus:
    """Return the status of one queue group; raises BadOption, which lists the existing ones."""
    statuses = queue_groups([find_queue_group(name, using_of_queues()).name])
    if not statuses:  # deleted since `find_queue_group`
        raise BadOption("queue_group", name, because=Sentence(_("it has just been deleted")))
    return statuses[0]


def _status(
    row: dict[str, Any],
    groups: Sequence[dict[str, Any]],
    servers: Sequence[dict[str, Any]],
    awaits: Mapping[int, int],
    flapping: Flapping | None,
) -> QueueGroupStatus:
    counts = {group["server"]: {name: group[name] for name in QUEUE_COUNTS} for group in groups}
    by_pk = {
        server["pk"]: ServerStatus(**server, **counts.get(server["pk"], {}), awaits=awaits.get(server["pk"], 0))
        for server in servers
    }
    orphaned = [group for group in groups if not ((owner := by_pk.get(group["server"])) and owner.is_alive)]
    row["was_served"] |= any(owner is not None for owner in counts)
    # Since the last heartbeat of the dead server, or since they were unassigned.
    spans = [
        owner.heartbeat if (owner := by_pk.get(group["server"])) else group["had_for"] for group in orphaned
    ]
    return QueueGroupStatus(
        **row,
        queues=sum(group["queues"] for group in groups),
        retiring=sum(group["retiring"] for group in groups),
        unowned=sum(group["queues"] for group in orphaned),
        unowned_for=max((span for span in spans if span is not None), default=None),
        asked_for=sum(group["asked_for"] for group in groups),
        flapping=flapping,
        servers=list(by_pk.values()),
    )


def _first_unowned(
    using: str, statuses: Sequence[QueueGroupStatus], groups: Mapping[int, Sequence[dict[str, Any]]]
) -> dict[int, dict[str, Any]]:
    """Return, for each queue group with servers and unowned queues, its first unowned queue and the reason."""
    alive = {
        status.pk: {server.pk: server for server in status.alive}
        for status in statuses
        if status.unowned and status.alive
    }
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
    """Count the queues of each server (None: unassigned) by queue group; ``first``: the key of the oldest queue."""
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
        *SERVER_COLUMNS,
        expires_in=Until("busy_before"),
        registered=Since("registered_at"),
        idle=Since("idle_since"),
        last_activity=Since("last_activity_at"),
    )
    return _by_queue_group(columns[:MAX_SERVERS])


def _by_queue_group(rows: Any) -> dict[int, list[dict[str, Any]]]:
    grouped: dict[int, list[dict[str, Any]]] = {}
    for row in fetch_all(rows):
        grouped.setdefault(row.pop("queue_group"), []).append(row)
    return grouped

"""The state of each task type: its settings, its servers with their queues, and queues without an owner.

Five statements for all task types together, however many queues and servers there are; one more if there are servers
and some queues have no owner, and two if a draining server keeps some.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from django.db.models import Count, Exists, Min, OuterRef, Q
from django.utils.translation import gettext_noop as _

from resourcepool.dialect import MicrosUntil
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.queues.models import Move, Queue, Server, TaskType
from resourcepool.queues.queries import find_task_type, using_of_queues
from resourcepool.status.durations import ago
from resourcepool.status.queues.flapping import Restless, restless_of
from resourcepool.status.queues.no_owner import PossibleOwner, why_nobody
from resourcepool.status.queues.stuck import Stuck, stuck_of
from resourcepool.status.reading import fetched

MOST_TASK_TYPES = 200
MOST_SERVERS = 5_000  # of all task types together

# The fields that are columns.
OF_SERVER = ("pk", "name", "holder", "state", "weight", "labels", "limit", "ttl", "in_hand")
INTERVALS = ("heartbeat_every", "judge_dead_after", "reload_every", "drain_within")
OF_TASK_TYPE = ("pk", "name", "strategy", *INTERVALS, "is_paused", "generation", "assigned_by")


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
    stirred: float | None = None
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
        """The properties that decide which queues it may have, for ``why_nobody``."""
        coming = self.queues - self.asked_for + self.awaits
        is_full = self.limit is not None and coming >= self.limit
        return PossibleOwner(self.labels, self.is_draining, is_full, self.name)

    @property
    def heartbeat(self) -> float:
        """How long ago its last heartbeat was."""
        return max(0.0, self.ttl - self.expires_in)


@dataclass(frozen=True, slots=True)
class TaskTypeStatus:
    """One task type at one moment of the database's clock; durations in seconds.

    Attributes:
        assigned: how long ago queues or servers changed last; None: never. ``assigned_by``: through whom.
        queues: how many there are; ``retiring``: of these, how many are being removed.
        unowned: how many have no living server; ``unowned_for``: for how long the first of them has had none, counted
            from when it was added or freed, or from its server's last heartbeat; None: all have one, or no server
            was ever there.
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
    drain_within: float
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
    restless: Restless | None = None
    stuck: Stuck | None = None
    servers: Sequence[ServerStatus] = field(default=())

    @property
    def alive(self) -> list[ServerStatus]:
        """The servers that are not judged dead."""
        return [server for server in self.servers if server.is_alive]


@dataclass(frozen=True, slots=True)
class _Group:
    """The queues of one server (None: nobody): how many of each kind, and the longest durations."""

    server: int | None
    count: int
    retiring: int
    first: int  # the key of the one that was added first
    asked_for: int
    since: float | None
    longest_asked: float | None


def task_types(names: Iterable[str] | None = None) -> list[TaskTypeStatus]:
    """Return the state of the task types, by name: those of these ``names``, or the first 200.

    Raises:
        DatabaseUnavailable, NotMigrated: nothing is known.
    """
    using = using_of_queues()
    was_served = Exists(Move.objects.using(using).filter(task_type=OuterRef("name")))
    rows = TaskType.objects.using(using).annotate(micros_assigned=MicrosUntil("assigned_at")).order_by("name")
    rows = rows.annotate(was_served=was_served)
    if names is not None:
        rows = rows.filter(name__in=list(names))
    found = fetched(rows[:MOST_TASK_TYPES])
    if not found:
        return []
    pks = [one.pk for one in found]
    groups, awaits, servers = _groups(using, pks), _awaits(using, pks), _servers(using, pks)
    restless = restless_of(using)
    stand = [
        _status(one, groups.get(one.pk, []), servers.get(one.pk, []), awaits, restless.get(one.name))
        for one in found
    ]
    stuck = stuck_of(using, {one.pk: one.alive for one in stand})
    return _with_why(using, [replace(one, stuck=stuck.get(one.pk)) for one in stand], groups)


def task_type(name: str) -> TaskTypeStatus:
    """Return the state of one task type; raises BadOption, which names the existing ones."""
    found = task_types([find_task_type(name, using_of_queues()).name])
    if not found:  # it was deleted in between
        raise BadOption("task_type", name, because=Sentence(_("it was there a moment ago")))
    return found[0]


def _status(
    row: Any, groups: Sequence[_Group], servers: Sequence[Any], awaits: Mapping[int, int], restless: Any
) -> TaskTypeStatus:
    has = {group.server: group for group in groups if group.server is not None}
    known = [_server(one, has.get(one.pk), awaits.get(one.pk, 0)) for one in servers]
    alive = {one.pk: one for one in known if one.is_alive}
    orphaned = [group for group in groups if group.server not in alive]
    was_served = row.was_served or bool(has)
    spans = [_unowned_for(group, known) for group in orphaned] if was_served or known else []
    return TaskTypeStatus(
        **{name: getattr(row, name) for name in OF_TASK_TYPE},
        assigned=ago(row.micros_assigned),
        queues=sum(group.count for group in groups),
        retiring=sum(group.retiring for group in groups),
        unowned=sum(group.count for group in orphaned),
        unowned_for=max((span for span in spans if span is not None), default=None),
        asked_for=sum(group.asked_for for group in groups),
        was_served=was_served,
        restless=restless,
        servers=known,
    )


def _unowned_for(group: _Group, servers: Sequence[ServerStatus]) -> float | None:
    """Return for how long the first of this group has had no living server, as far as it is known."""
    owner = next((one for one in servers if one.pk == group.server), None)
    return group.since if owner is None else owner.heartbeat


def _with_why(
    using: str, stand: Sequence[TaskTypeStatus], groups: Mapping[int, Sequence[_Group]]
) -> list[TaskTypeStatus]:
    """Add, for one queue of each task type, why nobody has it although there are servers."""
    firsts = {
        one.pk: min(group.first for group in groups[one.pk] if group.server not in alive)
        for one in stand
        if one.unowned and (alive := {server.pk for server in one.alive})
    }
    if not firsts:
        return list(stand)
    unowned = Queue.objects.using(using).filter(pk__in=firsts.values())
    rows = unowned.values_list("task_type", "queue_id", "labels", "pin")
    about = {pk: rest for pk, *rest in fetched(rows)}
    return [_told(one, *about[one.pk]) if one.pk in about else one for one in stand]


def _told(one: TaskTypeStatus, queue_id: str, labels: Mapping[str, str], pin: str) -> TaskTypeStatus:
    why = why_nobody(labels, [server.as_possible_owner for server in one.alive], pin)
    return replace(one, unowned_one=queue_id, unowned_why=why)


def _server(row: Any, has: _Group | None, awaits: int) -> ServerStatus:
    return ServerStatus(
        **{name: getattr(row, name) for name in OF_SERVER},
        expires_in=row.micros_left / 1_000_000,
        registered=ago(row.micros_registered) or 0.0,
        idle=ago(row.micros_idle),
        stirred=ago(row.micros_stirred),
        queues=has.count if has else 0,
        asked_for=has.asked_for if has else 0,
        longest_asked=has.longest_asked if has else None,
        awaits=awaits,
    )


def _groups(using: str, pks: Sequence[int]) -> dict[int, list[_Group]]:
    rows = Queue.objects.using(using).filter(task_type__in=pks).order_by().values("task_type", "cur_server")
    counted = rows.annotate(
        n_all=Count("pk"),
        n_retiring=Count("pk", filter=Q(is_retiring=True)),
        first=Min("pk"),
        n_asked=Count("requested_at"),
        micros_since=MicrosUntil(Min("since")),
        micros_asked=MicrosUntil(Min("requested_at")),
    )
    found: dict[int, list[_Group]] = {}
    for row in fetched(counted):
        counts = (row["n_all"], row["n_retiring"], row["first"], row["n_asked"])
        spans = (ago(row["micros_since"]), ago(row["micros_asked"]))
        found.setdefault(row["task_type"], []).append(_Group(row["cur_server"], *counts, *spans))
    return found


def _awaits(using: str, pks: Sequence[int]) -> dict[int, int]:
    rows = Queue.objects.using(using).filter(task_type__in=pks, requested_at__isnull=False)
    counted = rows.exclude(req_server=None).order_by().values_list("req_server").annotate(Count("pk"))
    return dict(fetched(counted))


def _servers(using: str, pks: Sequence[int]) -> dict[int, list[Any]]:
    rows = Server.objects.using(using).filter(task_type__in=pks).with_ages().order_by("pk")[:MOST_SERVERS]
    found: dict[int, list[Any]] = {}
    for row in fetched(rows):
        found.setdefault(row.task_type_id, []).append(row)
    return found

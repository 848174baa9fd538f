"""The state of locks, semaphores, read-write locks, conditions and barriers, by name, a page at a time."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, Count, Exists, F, Max, Min, OuterRef, Q, QuerySet, Sum, Value, When, Window
from django.db.models.functions import RowNumber

from resourcepool import options
from resourcepool.database.retry import retrying
from resourcepool.dialect import DbNow
from resourcepool.locks.models import MAX_NAME, NUMBER_MARK, AbstractPermit, Notification
from resourcepool.status.locks.kinds import LockKind, kind_and_name, kind_of, using
from resourcepool.status.snapshots import Since, Until, fetch_all
from resourcepool.waiting.models import Ticket

MAX_NAMES = 200  # on a page
HOLDERS_ON_PAGE = 10  # of a name on a page
MAX_HOLDERS = 100  # of a name that is shown in full
MAX_WAITERS = 100
HELD = Q(busy_before__gt=DbNow()) & ~Q(holder="")
BARRIER_ROW = Q(key__endswith=f"{NUMBER_MARK}0")  # the row of a barrier itself; others are of notified waiters


@dataclass(frozen=True, slots=True)
class ActiveLease:
    """What one request holds of a name.

    Attributes:
        fence: of its first row.
        expires_in: seconds until it expires unless it is renewed.
        is_waiting: it is still in line for more permits.
    """

    holder: str
    permits: int
    fence: int
    expires_in: float
    is_waiting: bool = False


@dataclass(frozen=True, slots=True)
class Waiter:
    """A place in the line for a name.

    Attributes:
        permits: how many it wants.
        waited: seconds.
    """

    holder: str
    permits: int
    priority: int
    waited: float


@dataclass(frozen=True, slots=True)
class LockStatus:
    """The state of one name at one moment of the database's clock; times in seconds.

    Attributes:
        permits: in service; of a lock 1, of a condition or a barrier 0.
        held: how many are held, those no longer in service, too; of a condition or a barrier, how many waiters were
            notified and have not come back yet.
        holders: the first of them.
        stands: of a barrier, who created it; "": there is none.
        fence: the highest of its rows; 0: it has none.
        waiters: how many wait for it; ``longest_wait``: for how long the first of them has; None: nobody waits.
        line: those who wait, the first to be served first; only of a name that is shown in full.
    """

    kind: LockKind
    name: str
    permits: int = 0
    held: int = 0
    holders: tuple[ActiveLease, ...] = ()
    fence: int = 0
    waiters: int = 0
    longest_wait: float | None = None
    line: tuple[Waiter, ...] = ()
    stands: str = ""

    @property
    def called(self) -> str:
        """Its kind and name, for people."""
        return self.kind.called(self.name)

    @property
    def in_use(self) -> tuple[ActiveLease, ...]:
        """``holders`` without those that still wait for more permits."""
        return tuple(one for one in self.holders if not one.is_waiting)


@dataclass(frozen=True, slots=True)
class Page:
    """Some names in order; ``after``: the last of them if there are more, else ""."""

    locks: list[LockStatus]
    after: str


def locks(
    *,
    kind: str | Collection[LockKind] = "",
    prefix: str = "",
    held: bool = False,
    waited: bool = False,
    after: str = "",
    limit: int = MAX_NAMES,
) -> Page:
    """Return how the names stand that come after ``after``: nine statements at most, however many there are.

    Args:
        kind: a ``LockKind``, or some; "": all of them.
        prefix: how the names begin.
        held, waited: only those that somebody holds; only those that somebody waits for.
        limit: 1 to ``MAX_NAMES``; all kinds of the last name are on the same page.

    Raises:
        BadOption: a value is not allowed.
        DatabaseUnavailable: they cannot be read.
    """
    kinds = ([kind_of(kind)] if isinstance(kind, str) else kind) if kind else LockKind
    limit = options.whole("limit", limit, least=1, most=MAX_NAMES)
    for option, text in (("after", after), ("prefix", prefix)):
        if text:
            options.text(option, text, most=MAX_NAME)
    connection = connections[using()]
    chosen = [(one, names) for one in kinds for names in _chosen(one, prefix, after, held=held, waited=waited)]
    found, has_more = retrying(connection, partial(_names, connection, chosen, limit))
    return Page(_statuses(found), found[-1][1] if has_more else "")


def statuses_of(
    kind: LockKind, names: Iterable[str], *, holders: int = HOLDERS_ON_PAGE
) -> dict[str, LockStatus]:
    """Return the state of these names of one kind, also of names without a row; raises DatabaseUnavailable."""
    return {one.name: one for one in _statuses([(kind, name) for name in names], holders)}


def lock_named(name: str, kind: str = "") -> list[LockStatus]:
    """Return the state of this name, once for each kind that has it, in full: with its line, and more holders.

    Raises:
        BadOption: there is no such kind.
        DatabaseUnavailable: it cannot be read.
    """
    if (
        not name.isprintable() or len(name) > MAX_NAME
    ):  # nothing has such a name, and it may be no text for databases
        return []
    kinds = [kind_of(kind)] if kind else [*LockKind]
    # No condition is called "barrier:..": its line would be that of a barrier.
    chosen = [(one, name) for one in kinds if kind_and_name(one.ticket_pool(name)) == (one, name)]
    found = _statuses(chosen, MAX_HOLDERS)
    return [replace(one, line=_line(one)) for one in found if one.fence or one.waiters]


def _chosen(kind: LockKind, prefix: str, after: str, *, held: bool, waited: bool) -> list[Any]:
    """Return the rows, or tickets, whose names are asked for; of a condition or a barrier those of two tables."""
    rows, tickets = kind.rows(), kind.tickets()
    if prefix:
        rows, tickets = (
            rows.filter(name__begins=kind.stored(prefix)),
            tickets.filter(pool__begins=kind.ticket_pool(prefix)),
        )
    found: list[QuerySet[Any]]
    if not kind.is_held:
        found = [] if held else [tickets] if waited else [tickets, rows.filter(HELD)]
    elif waited:
        holds = Exists(rows.filter(HELD, name=OuterRef("called")))
        found = [tickets.filter(holds) if held else tickets]
    else:
        found = [rows.filter(HELD) if held else rows]
    return [some.filter(called__gt=after) if after else some for some in found]


def _names(
    connection: BaseDatabaseWrapper, chosen: Sequence[tuple[LockKind, Any]], limit: int
) -> tuple[list[tuple[LockKind, str]], bool]:
    """Return the first (kind, name) by name, at least ``limit`` if there are, and whether there are more."""
    parts, params = list[str](), list[Any]()
    for kind, rows in chosen:
        names = rows.order_by("called").values_list("called", flat=True).distinct()[: limit + 1]
        sql, values = names.query.get_compiler(connection=connection).as_sql()
        parts.append(f"SELECT '{kind.value}' AS kind, called FROM ({sql}) of_{len(parts)}")  # noqa: S608 (values apart)
        params += values
    if not parts:
        return [], False
    most = limit + len(LockKind)
    with connection.cursor() as cursor:
        cursor.execute(f"{' UNION '.join(parts)} ORDER BY 2, 1 LIMIT {most}", params)
        found = [(LockKind(kind), name) for kind, name in cursor.fetchall()]
    here = [one for number, one in enumerate(found) if number < limit or one[1] == found[limit - 1][1]]
    return here, len(here) < len(found)


def _statuses(chosen: Sequence[tuple[LockKind, str]], holders: int = HOLDERS_ON_PAGE) -> list[LockStatus]:
    """Return the state of each: two statements for each table, one for waiters, one for what waiters have so far."""
    if not chosen:
        return []
    totals: dict[Any, Mapping[str, Any]] = {}
    first: dict[Any, list[ActiveLease]] = {}
    for model in dict.fromkeys(kind.model for kind, _name in chosen):
        names = [kind.stored(name) for kind, name in chosen if kind.model is model]
        rows = model.objects.using(using()).filter(name__in=names)
        for total in fetch_all(_totals(rows)):
            name, fence = total.pop("name"), total.pop("last")
            totals[model, name] = {**total, "fence": fence}
        for name, *held in fetch_all(_holders(rows, holders)):
            first.setdefault((model, name), []).append(ActiveLease(*held))
    lines = [kind.ticket_pool(name) for kind, name in chosen]
    tickets = Ticket.objects.using(using()).waiting().filter(pool__in=lines).values("pool").order_by()
    asked = tickets.annotate(waiters=Count("pk"), longest_wait=Since(Min("asked_at")))
    waits = {kind_and_name(one.pop("pool")): one for one in fetch_all(asked)}
    held_of = {(kind, name): first.get((kind.model, kind.stored(name)), []) for kind, name in chosen}
    _note_waiting(held_of, waits)
    return [
        LockStatus(
            kind,
            name,
            **totals.get((kind.model, kind.stored(name)), {}),
            **waits.get((kind, name), {}),
            holders=tuple(held_of[kind, name]),
        )
        for kind, name in chosen
    ]


def _note_waiting(held: dict[tuple[LockKind, str], list[ActiveLease]], waits: Collection[Any]) -> None:
    """Mark what a request for several permits holds while it is still in line."""
    wanted = [one for one in waits if one[0].has_permits and held.get(one)]
    if not wanted:
        return
    lines = {kind.ticket_pool(name): (kind, name) for kind, name in wanted}
    holders = {one.holder for about in wanted for one in held[about]}
    tickets = Ticket.objects.using(using()).waiting().filter(pool__in=lines, holder__in=holders).order_by()
    collecting = {(lines[pool], holder) for pool, holder in fetch_all(tickets.values_list("pool", "holder"))}
    for about in wanted:
        held[about] = [replace(one, is_waiting=(about, one.holder) in collecting) for one in held[about]]


def _totals(rows: QuerySet[Any]) -> Any:
    """Return fields of ``LockStatus`` for each name."""
    by_name, model = rows.values("name").order_by(), rows.model
    by_name = by_name.annotate(held=_number(_held(model)), last=Max("fence"))
    if model is Notification:
        return by_name.annotate(stands=Max(Case(When(HELD & BARRIER_ROW, then=F("holder")), default=Value(""))))
    return by_name.annotate(
        permits=_number(Q(in_service=True)) if issubclass(model, AbstractPermit) else Count("pk")
    )


def _number(which: Q) -> Sum:
    return Sum(Case(When(which, then=1), default=0))


def _held(model: Any) -> Q:
    return HELD & ~BARRIER_ROW if model is Notification else HELD


def _holders(rows: QuerySet[Any], most: int) -> QuerySet[Any]:
    """Return name and fields of ``ActiveLease``, one row for each request; the first ``most`` of each name."""
    requests = rows.filter(_held(rows.model)).values("name", "holder").order_by()
    left = Until(Min("busy_before"))
    summed = requests.annotate(permits=Count("pk"), first=Min("fence"), left=left)
    rank = Window(RowNumber(), partition_by=F("name"), order_by="holder")
    found: QuerySet[Any] = summed.annotate(rank=rank).filter(rank__lte=most).order_by("name", "holder")
    return found.values_list("name", "holder", "permits", "first", "left")


def _line(one: LockStatus) -> tuple[Waiter, ...]:
    if not one.waiters:
        return ()
    tickets = Ticket.objects.using(using()).waiting().filter(pool=one.kind.ticket_pool(one.name))
    rows = tickets.order_by("priority", "pk").values_list("holder", "count", "priority", Since("asked_at"))
    return tuple(Waiter(*row) for row in fetch_all(rows[:MAX_WAITERS]))

"""The status of locks, semaphores, read-write locks, conditions and barriers, by name and page by page."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, Count, Exists, F, Max, Min, OuterRef, Q, QuerySet, Sum, Value, When, Window
from django.db.models.functions import RowNumber

from resourcepool import options
from resourcepool.db.dialect import DbNow
from resourcepool.db.retry import retrying
from resourcepool.locks.models import MAX_NAME, NUMBER_MARK
from resourcepool.status.locks.kinds import (
    Before,
    LockKind,
    held_before,
    held_for,
    kind_and_name,
    kind_of,
    using,
)
from resourcepool.status.snapshots import Since, Until, fetch_all
from resourcepool.waiting.models import Ticket

MAX_NAMES = 200  # on a page
HOLDERS_ON_PAGE = 10  # of each name on a page
MAX_HOLDERS = 100  # of a name shown in full
MAX_WAITERS = 100
HELD = Q(busy_before__gt=DbNow()) & ~Q(holder="")
BARRIER_ROW = Q(key__endswith=f"{NUMBER_MARK}0")  # the barrier itself; other rows are its notified waiters

KindAndName = tuple[LockKind, str]


@dataclass(frozen=True, slots=True)
class LockHolder:
    """The rows of a name that one request holds.

    Attributes:
        fence: the fence of its first row.
        expires_in: seconds until it expires unless renewed.
        is_waiting: whether it still waits for more permits.
        held: seconds for which it has held its first row; None: that is not in the history.
    """

    holder: str
    permits: int
    fence: int
    expires_in: float
    is_waiting: bool = False
    held: float | None = None


@dataclass(frozen=True, slots=True)
class Waiter:
    """A request that waits for a name.

    Attributes:
        permits: requested number of permits.
        waited: seconds.
    """

    holder: str
    permits: int
    priority: int
    waited: float


@dataclass(frozen=True, slots=True)
class LockStatus:
    """The status of one name at one moment of the database's clock; times in seconds.

    Attributes:
        permits: permits in service; 1 for a lock, 0 for a condition or barrier.
        held: permits held, including those out of service; for a condition or barrier, notified waiters that have not
            continued yet.
        holders: the first holders.
        creator: the creator of a barrier; "": the barrier does not exist.
        fence: the highest fence of its rows; 0 without rows.
        waiters: number of waiters; ``longest_wait``: of the first waiter, None without waiters.
        line: the waiters in order; only of a name shown in full.
        before: who held a lock before; None: it is no lock, or that is not in the history.
    """

    kind: LockKind
    name: str
    permits: int = 0
    held: int = 0
    holders: tuple[LockHolder, ...] = ()
    fence: int = 0
    waiters: int = 0
    longest_wait: float | None = None
    line: tuple[Waiter, ...] = ()
    creator: str = ""
    before: Before | None = None

    @property
    def called(self) -> str:
        """Its kind and name, for people."""
        return self.kind.called(self.name)

    @property
    def in_use(self) -> tuple[LockHolder, ...]:
        """``holders`` without requests that still wait for more permits."""
        return tuple(holder for holder in self.holders if not holder.is_waiting)


@dataclass(frozen=True, slots=True)
class Page:
    """Some names in order; ``after``: the last of them if there are more, otherwise ""."""

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
    """Return the status of the names after ``after``; at most 19 queries, independent of their number.

    Args:
        kind: one or several ``LockKind``; "": all.
        prefix: the start of the names.
        held, waited: only names with holders; only names with waiters.
        limit: 1 to ``MAX_NAMES``; all kinds of the last name are on the same page.

    Raises:
        BadOption: an argument is invalid.
        DatabaseUnavailable: they cannot be read.
    """
    kinds = ([kind_of(kind)] if isinstance(kind, str) else kind) if kind else LockKind
    limit = options.whole("limit", limit, least=1, most=MAX_NAMES)
    for option, text in (("after", after), ("prefix", prefix)):
        if text:
            options.text(option, text, most=MAX_NAME)
    connection = connections[using()]
    sources = [(of, rows) for of in kinds for rows in _sources(of, prefix, after, held=held, waited=waited)]
    names, has_more = retrying(connection, partial(_names, connection, sources, limit))
    return Page(statuses_of(names), names[-1][1] if has_more else "")


def status_of(kind: LockKind, names: Iterable[str], *, holders: int = HOLDERS_ON_PAGE) -> dict[str, LockStatus]:
    """Return the status of these names of one kind, also of names without rows; raises DatabaseUnavailable."""
    return {status.name: status for status in statuses_of([(kind, name) for name in names], holders)}


def lock_named(name: str, kind: str = "") -> list[LockStatus]:
    """Return the full status of this name for each kind that has it, with its waiters and more holders.

    Raises:
        BadOption: unknown kind.
        DatabaseUnavailable: it cannot be read.
    """
    if not name.isprintable() or len(name) > MAX_NAME:  # invalid, and some databases reject such text
        return []
    kinds = [kind_of(kind)] if kind else [*LockKind]
    statuses = statuses_of([(of, name) for of in kinds], MAX_HOLDERS)
    return [replace(status, line=_waiters(status)) for status in statuses if status.fence or status.waiters]


def _sources(kind: LockKind, prefix: str, after: str, *, held: bool, waited: bool) -> list[Any]:
    """Return the querysets (rows, tickets) whose names are wanted; for conditions and barriers both."""
    rows, tickets = kind.rows(), kind.tickets()
    if prefix:
        rows, tickets = (
            rows.filter(name__begins=prefix),
            tickets.filter(pool__begins=kind.ticket_pool(prefix)),
        )
    sources: list[QuerySet[Any]]
    if not kind.is_held:
        sources = [] if held else [tickets] if waited else [tickets, rows.filter(HELD)]
    elif waited:
        is_held = Exists(rows.filter(HELD, name=OuterRef("called")))
        sources = [tickets.filter(is_held) if held else tickets]
    else:
        sources = [rows.filter(HELD) if held else rows]
    return [source.filter(called__gt=after) if after else source for source in sources]


def _names(
    connection: BaseDatabaseWrapper, sources: Sequence[tuple[LockKind, Any]], limit: int
) -> tuple[list[tuple[LockKind, str]], bool]:
    """Return the first ``limit`` (kind, name) pairs, plus other kinds of the last name, and whether there are more."""
    parts, params = list[str](), list[Any]()
    for kind, rows in sources:
        names = rows.order_by("called").values_list("called", flat=True).distinct()[: limit + 1]
        sql, values = names.query.get_compiler(connection=connection).as_sql()
        parts.append(f"SELECT '{kind.value}' AS kind, called FROM ({sql}) of_{len(parts)}")  # noqa: S608 (values apart)
        params += values
    if not parts:
        return [], False
    most = limit + len(LockKind)
    with connection.cursor() as cursor:
        cursor.execute(f"{' UNION '.join(parts)} ORDER BY 2, 1 LIMIT {most}", params)
        pairs = [(LockKind(kind), name) for kind, name in cursor.fetchall()]
    on_page = [pair for number, pair in enumerate(pairs) if number < limit or pair[1] == pairs[limit - 1][1]]
    return on_page, len(on_page) < len(pairs)


def statuses_of(chosen: Sequence[KindAndName], holders: int = HOLDERS_ON_PAGE) -> list[LockStatus]:
    """Return the status of each, in order: four queries per kind, and three for all. Raises DatabaseUnavailable."""
    if not chosen:
        return []
    totals: dict[KindAndName, Mapping[str, Any]] = {}
    held_of: dict[KindAndName, list[LockHolder]] = {key: [] for key in chosen}
    for kind in dict.fromkeys(kind for kind, _name in chosen):
        rows = kind.rows().filter(name__in=[name for of, name in chosen if of is kind])
        for total in fetch_all(_totals(kind, rows)):
            name, fence = total.pop("name"), total.pop("last")
            totals[kind, name] = {**total, "fence": fence}
        found = fetch_all(_holders(kind, rows, holders))
        held_since = held_for(kind, {key: fence for key, _name, _holder, _permits, fence, _left in found})
        for key, name, *held in found:
            held_of[kind, name].append(replace(LockHolder(*held), held=held_since.get(key)))
    pools = [kind.ticket_pool(name) for kind, name in chosen]
    tickets = Ticket.objects.using(using()).waiting().filter(pool__in=pools).values("pool").order_by()
    counted = tickets.annotate(waiters=Count("pk"), longest_wait=Since(Min("asked_at")))
    waits = {kind_and_name(fields.pop("pool")): fields for fields in fetch_all(counted)}
    _note_waiting(held_of, waits)
    of_locks = {
        name: (totals[kind, name]["fence"], bool(held))
        for (kind, name), held in held_of.items()
        if kind is LockKind.LOCK and (kind, name) in totals
    }
    before = held_before(LockKind.LOCK, of_locks)
    return [
        LockStatus(
            kind,
            name,
            **totals.get((kind, name), {}),
            **waits.get((kind, name), {}),
            holders=tuple(held_of[kind, name]),
            before=before.get(name) if kind is LockKind.LOCK else None,
        )
        for kind, name in chosen
    ]


def _note_waiting(held: dict[KindAndName, list[LockHolder]], waits: Collection[Any]) -> None:
    """Mark holdings of requests that still wait for more permits."""
    keys = [key for key in waits if key[0].has_permits and held.get(key)]
    if not keys:
        return
    pools = {kind.ticket_pool(name): (kind, name) for kind, name in keys}
    holders = {holding.holder for key in keys for holding in held[key]}
    tickets = Ticket.objects.using(using()).waiting().filter(pool__in=pools, holder__in=holders).order_by()
    waiting = {(pools[pool], holder) for pool, holder in fetch_all(tickets.values_list("pool", "holder"))}
    for key in keys:
        held[key] = [replace(one, is_waiting=(key, one.holder) in waiting) for one in held[key]]


def _totals(kind: LockKind, rows: QuerySet[Any]) -> Any:
    """Return fields of ``LockStatus`` for each name."""
    by_name = rows.values("name").order_by().annotate(held=_number(_held(kind)), last=Max("fence"))
    if kind is LockKind.BARRIER:
        creator = Case(When(HELD & BARRIER_ROW, then=F("holder")), default=Value(""))
        return by_name.annotate(creator=Max(creator))
    if not kind.is_held:
        return by_name
    return by_name.annotate(permits=_number(Q(in_service=True)) if kind.has_permits else Count("pk"))


def _number(which: Q) -> Sum:
    return Sum(Case(When(which, then=1), default=0))


def _held(kind: LockKind) -> Q:
    return HELD & ~BARRIER_ROW if kind is LockKind.BARRIER else HELD


def _holders(kind: LockKind, rows: QuerySet[Any], most: int) -> QuerySet[Any]:
    """Return the key of a row, name and fields of ``LockHolder``, one row per request, at most ``most`` per name."""
    requests = rows.filter(_held(kind)).values("name", "holder").order_by()
    left = Until(Min("busy_before"))
    summed = requests.annotate(row=Min("pk"), permits=Count("pk"), first=Min("fence"), left=left)
    rank = Window(RowNumber(), partition_by=F("name"), order_by="holder")
    first_rows: QuerySet[Any] = summed.annotate(rank=rank).filter(rank__lte=most).order_by("name", "holder")
    return first_rows.values_list("row", "name", "holder", "permits", "first", "left")


def _waiters(status: LockStatus) -> tuple[Waiter, ...]:
    if not status.waiters:
        return ()
    tickets = Ticket.objects.using(using()).waiting().filter(pool=status.kind.ticket_pool(status.name))
    rows = tickets.order_by("priority", "pk").values_list("holder", "count", "priority", Since("asked_at"))
    return tuple(Waiter(*row) for row in fetch_all(rows[:MAX_WAITERS]))

"""Active leases: their holders, when they began, and when they expire unless they are renewed."""

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from django.db import connections, router
from django.db.models import CharField, Exists, OuterRef, Q, UUIDField, Value
from django.db.models.functions import Cast, Concat, Substr

from resourcepool.db.retry import retrying
from resourcepool.db.row_locks import Locked, lockers
from resourcepool.history.models import Event
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.signals import EventKind
from resourcepool.status.snapshots import Until, fetch_all, read_each
from resourcepool.status.times import duration
from resourcepool.translation import gettext as _

MAX_LOCK_CHECKS = 100  # expired leases whose rows are checked for locks
DEFAULT_HOLDER = "^[^/]*/[0-9]+/[^/]*/[^/]*$"  # host/pid/thread/number
OVERDUE_AFTER = 1.5  # renewal intervals
ROUNDING = 0.1  # seconds


@dataclass(frozen=True, slots=True)
class Renewal:
    """The last renewal of a running lease, or its grant.

    Attributes:
        ago: seconds since then.
        every: interval of the renewals in seconds.
    """

    ago: float
    every: float

    ALSO: ClassVar = ("is_overdue",)

    @property
    def is_overdue(self) -> bool:
        """Whether its holder should have renewed it by now."""
        return self.ago > OVERDUE_AFTER * self.every

    def __str__(self) -> str:
        times = {"time": duration(self.ago), "every": duration(self.every)}
        if self.is_overdue:
            return _("%(time)s ago: overdue (due every %(every)s)") % times
        return _("%(time)s ago (due every %(every)s)") % times


def renewal(ttl: float | None, expires_in: float) -> Renewal | None:
    """Return the last renewal of a lease; None if unknown.

    Args:
        ttl: from the history, in seconds; None: unknown.
        expires_in: seconds until it expires.
    """
    if ttl is None or expires_in > ttl + ROUNDING:
        return None
    return Renewal(max(0.0, ttl - expires_in), ttl / 3)


@dataclass(frozen=True, slots=True)
class ActiveLease:
    """One active lease.

    Attributes:
        row: the resource; ``str(row)`` shows no secret.
        since: when it was acquired; ``held``: seconds since then; None if that is not in the history.
        expires_in: seconds until it expires unless renewed.
        renewal: the last one; None if its ``ttl`` is not in the history.
        host, pid: of the process that acquired it, from the history or the holder's name; "" and 0 if unknown.
    """

    row: Any
    holder: str
    fence: int
    since: datetime.datetime | None
    held: float | None
    expires_in: float
    renewal: Renewal | None
    host: str
    pid: int


def active_leases(
    model: Any, *, holder: str = "", host: str = "", pk: Any = None, limit: int = 100
) -> list[ActiveLease]:
    """Return up to ``limit`` active leases of this pool, the next to expire first.

    Args:
        holder: only leases of exactly this holder.
        host: only leases of processes on this host: see ``on_host``.
        pk: only this resource.
    """
    rows = leased_rows(model, holder=holder, host=host)
    rows = rows if pk is None else rows.filter(pk=pk)
    leased = list(rows.annotate(left=Until("busy_before")).order_by("busy_before", "pk")[:limit])
    acquired = acquisitions(model, [(row.pk, row.fence) for row in leased])
    return [_active_lease(row, acquired.get((str(row.pk), row.fence))) for row in leased]


def leased_rows(model: Any, *, holder: str = "", host: str = "") -> ResourceQuerySet:
    """Return the resources of the leases that ``active_leases`` lists."""
    return last_leased_by(ResourceQuerySet(model=model, using=model.pool.using), holder, host).held()


def locked(rows: ResourceQuerySet) -> list[Locked]:
    """Return the leases of ``rows`` that expired last and are still locked, usually by a holder inside ``guard``."""
    last = rows.expired().order_by("-busy_before").values_list("pk", flat=True)
    return lockers(rows.db, rows.model, fetch_all(last[:MAX_LOCK_CHECKS]))


def last_leased_by(rows: ResourceQuerySet, holder: str, host: str) -> ResourceQuerySet:
    """Return those of ``rows`` that are, or were last, leased by this holder and on this host; "": any."""
    if holder:
        rows = rows.filter(holder=holder)
    if host:
        rows = on_host(rows, host)
    return rows


def on_host(rows: Any, host: str) -> Any:
    """Return the ``rows`` that were leased on this host, by the holder's default name or the history.

    If the history is in another database, only the name counts.
    """
    on_it: Any = Q(holder__startswith=f"{host}/")
    if shares_history_database(rows.model):  # not for default names: they contain the host
        on_it |= ~Q(holder__regex=DEFAULT_HOLDER) & Exists(
            acquisition_of_outer_row(rows.model).filter(host=host)
        )
    return rows.filter(on_it)


def shares_history_database(model: Any) -> bool:
    return bool(router.db_for_read(Event) == model.pool.using)


def acquisition_of_outer_row(model: Any) -> Any:
    """Return a subquery of the event in which the outer row's lease was acquired; it uses an index."""
    events = Event.objects.using(model.pool.using).order_by()
    key = _as_text(model._meta.pk, connections[model.pool.using])
    return events.filter(
        pool=model._meta.label_lower, row=key, fence=OuterRef("fence"), what=EventKind.ACQUIRED
    )


def _as_text(key: Any, connection: Any) -> Any:
    """Return an expression of the outer query's primary key as text, as events have it."""
    if not isinstance(key, UUIDField) or connection.features.has_native_uuid_field:
        return Cast(OuterRef("pk"), CharField())
    digits = Cast(OuterRef("pk"), CharField())  # 32, without dashes
    first, *rest = (Substr(digits, *part) for part in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12)))
    return Concat(first, *(text for part in rest for text in (Value("-"), part)))


def lease_counts(models: Iterable[Any], *, holder: str = "", host: str = "") -> dict[Any, int]:
    """Return {model: number of ``leased_rows``} for the pools that have any.

    A pool without a table has none; raises NotMigrated if no pool has a table.
    """

    def count(model: Any) -> int:
        rows = leased_rows(model, holder=holder, host=host)
        return retrying(connections[model.pool.using], rows.count)

    return {model: number for model, number in read_each(models, count).items() if number}


def acquisitions(model: Any, grants: list[tuple[Any, int]]) -> dict[tuple[str, int], Event]:
    """Return {(row, fence): event of its acquisition} for those in the history."""
    if not grants:
        return {}
    events = Event.objects.using(router.db_for_read(Event)).with_age()
    begun = events.filter(
        pool=model._meta.label_lower,
        row__in={str(pk) for pk, _ in grants},
        fence__in={fence for _, fence in grants},
        what=EventKind.ACQUIRED,
    )
    return {(event.row, event.fence): event for event in begun.order_by("pk")}


def changes_of_status(model: Any, rows: list[tuple[Any, int]]) -> dict[str, Event]:
    """Return {row: the last event in which an operator took it out of service} for those in the history.

    Args:
        rows: (primary key, fence) of rows that are out of service.
    """
    if not rows:
        return {}
    events = Event.objects.using(router.db_for_read(Event)).filter(
        pool=model._meta.label_lower,
        row__in={str(pk) for pk, _ in rows},
        # The quarantine of a free row increases its fence.
        fence__in={fence - n for _, fence in rows for n in (0, 1)},
        what__in=(EventKind.QUARANTINED, EventKind.DRAINED, EventKind.RESERVED),
    )
    return {event.row: event for event in events.exclude(actor="").order_by("pk")}


def _active_lease(row: Any, event: Event | None) -> ActiveLease:
    host, pid = host_and_pid(row.holder)
    expires_in = max(0.0, row.left)
    return ActiveLease(
        row=row,
        holder=row.holder,
        fence=row.fence,
        since=event.at if event else None,
        held=event.age if event else None,
        expires_in=expires_in,
        renewal=renewal(event.ttl if event else None, expires_in),
        host=event.host if event else host,
        pid=event.pid if event else pid,
    )


def host_and_pid(holder: str) -> tuple[str, int]:
    """Return host and process id from a default holder's name ("host/pid/thread/number"), or "" and 0."""
    host, pid, *_rest = holder.split("/") if re.match(DEFAULT_HOLDER, holder) else ("", "0")
    return host, int(pid)

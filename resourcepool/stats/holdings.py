"""Who holds what, since when, and until when if nothing renews it."""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import connections, router

from resourcepool.dialect import MicrosUntil
from resourcepool.history.models import Event
from resourcepool.leases.retry import retrying
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.signals import What
from resourcepool.stats.readable import of_each


@dataclass(frozen=True, slots=True)
class Holding:
    """One running lease.

    Attributes:
        row: the resource; ``str(row)`` shows no secret.
        since: when it was acquired, as the history tells; None when it does not.
        expires_in: seconds until it runs out unless it is renewed.
        host, pid: of the process that acquired it, as the history or the holder's name tells; "" and 0 if neither.
    """

    row: Any
    holder: str
    fence: int
    since: datetime.datetime | None
    expires_in: float
    host: str
    pid: int


def holdings(
    model: Any, *, holder: str = "", host: str = "", pks: Iterable[Any] = (), limit: int = 100
) -> list[Holding]:
    """Return up to ``limit`` running leases of this pool, those that run out first at the front.

    Args:
        holder: only leases of exactly this holder.
        host: only leases of holders whose default name begins with this host.
        pks: only these resources.
    """
    rows = running(model, holder=holder, host=host, pks=pks)
    found = list(rows.annotate(left=MicrosUntil("busy_before")).order_by("busy_before", "pk")[:limit])
    begun = beginnings(model, [(row.pk, row.fence) for row in found])
    return [_holding(row, begun.get((str(row.pk), row.fence))) for row in found]


def running(model: Any, *, holder: str = "", host: str = "", pks: Iterable[Any] = ()) -> ResourceQuerySet:
    """Return the resources under the running leases that ``holdings`` lists."""
    rows = ResourceQuerySet(model=model, using=model.pool.using).held()
    if holder:
        rows = rows.filter(holder=holder)
    if host:
        rows = rows.filter(holder__startswith=f"{host}/")
    if keys := list(pks):
        rows = rows.filter(pk__in=keys)
    return rows


def counts(
    models: Iterable[Any], *, holder: str = "", host: str = "", pks: Iterable[Any] = ()
) -> dict[Any, int]:
    """Return {model: how many leases ``running`` has} of the pools that have any.

    A pool whose table does not exist yet has none; raises NotMigrated when no pool has a table.
    """

    def count(model: Any) -> int:
        rows = running(model, holder=holder, host=host, pks=pks)
        return retrying(connections[model.pool.using], rows.count)

    return {model: found for model, found in of_each(models, count).items() if found}


def beginnings(model: Any, grants: list[tuple[Any, int]]) -> dict[tuple[str, int], Event]:
    """Return {(row, fence): the event of its acquisition} as far as the history knows."""
    if not grants:
        return {}
    events = Event.objects.using(router.db_for_read(Event)).filter(
        pool=model._meta.label_lower,
        row__in={str(pk) for pk, _ in grants},
        fence__in={fence for _, fence in grants},
        what=What.ACQUIRED,
    )
    return {(event.row, event.fence): event for event in events.order_by("pk")}


def _holding(row: Any, event: Event | None) -> Holding:
    host, pid = origin(row.holder)
    return Holding(
        row=row,
        holder=row.holder,
        fence=row.fence,
        since=event.at if event else None,
        expires_in=max(0.0, row.left / 1_000_000),
        host=event.host if event else host,
        pid=event.pid if event else pid,
    )


def origin(holder: str) -> tuple[str, int]:
    """Return host and process id out of a holder's default name ("host/pid/thread/number"), or "" and 0."""
    parts = holder.split("/")
    return (parts[0], int(parts[1])) if len(parts) == 4 and parts[1].isdecimal() else ("", 0)

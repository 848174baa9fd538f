"""Says why nothing could be had in time, for whoever reads the error at night."""

from typing import TYPE_CHECKING

from django.db import DatabaseError, InterfaceError, connections
from django.db.models import Count, Q

from resourcepool.dialect import DbNow
from resourcepool.exceptions import AcquireTimeout, ResourcePoolError
from resourcepool.leases import verbs
from resourcepool.resources import selectors
from resourcepool.waiting.models import Ticket
from resourcepool.waiting.request import Request

if TYPE_CHECKING:
    from resourcepool.resources.pool import Pool


def timed_out(pool: "Pool", asked: Request, holder: str, trouble: Exception | None) -> AcquireTimeout:
    """Return the error for a request that was not filled; it counts what there is, if the database answers."""
    label = pool.model._meta.label
    number = "" if asked.count == 1 else f"{asked.count} of "
    wish = "" if asked.selector == "{}" else f" matching {asked.selector}"
    found = "" if trouble else _what_there_is(pool, asked, holder)
    why = f": {trouble}" if trouble else found
    return AcquireTimeout(f"no {number}{label}{wish} came free within {asked.timeout:g} s{why}")


def _what_there_is(pool: "Pool", asked: Request, holder: str) -> str:
    connection = connections[pool.using]
    busy = Q(busy_before__gt=DbNow())
    wanted = selectors.wanted(pool.model, asked.selector)
    try:
        rows = verbs.rows_of(connection, pool.model).filter(wanted)
        counts = rows.aggregate(
            match=Count("pk"),
            leased=Count("pk", filter=busy & ~Q(holder="")),
            resting=Count("pk", filter=busy & Q(holder="", in_service=True)),
            out=Count("pk", filter=Q(in_service=False)),
        )
        tickets = Ticket.objects.using(connection.alias).waiting().for_rows_of(pool.model)
        others = tickets.exclude(holder=holder).count()
    except (DatabaseError, InterfaceError, ResourcePoolError):
        return ""
    return (
        ": {match} match, {leased} leased, {resting} cooling down or quarantined, {out} out of service".format(
            **counts
        )
        + f"; {others} others waiting for this pool"
    )

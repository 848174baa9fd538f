"""Explains why no row came free in time, for people who read the error."""

from django.db import DatabaseError, InterfaceError, connections
from django.db.models import Count, Q

from resourcepool.database.retry import A_LITTLE, answer_timeout, retrying
from resourcepool.dialect import DbNow
from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable, ResourcePoolError
from resourcepool.leases import verbs
from resourcepool.leases.table import Model
from resourcepool.resources import selectors
from resourcepool.waiting.models import Ticket
from resourcepool.waiting.request import Request

THERE_IS = (
    ": {match} match, {leased} leased, {resting} cooling down or quarantined, {out} out of service"
    "; {others} others waiting for this pool"
)


def timed_out(
    model: Model, using: str, asked: Request, holder: str, trouble: Exception | None
) -> AcquireTimeout:
    """Return the error for a request that was not filled; it counts rows by state, if the database answers."""
    number = "" if asked.count == 1 else f"{asked.count} of "
    wish = "" if asked.selector == "{}" else f" matching {asked.selector}"
    what, seconds = f"{number}{model._meta.label}{wish}", f"{asked.timeout:g} s"
    why = f": {trouble}" if trouble else _what_there_is(model, using, asked, holder)
    return AcquireTimeout(f"no {what} came free within {seconds}{why}")


def _what_there_is(model: Model, using: str, asked: Request, holder: str) -> str:
    connection, busy = connections[using], Q(busy_before__gt=DbNow())
    rows = verbs.rows_of(connection, model).filter(selectors.wanted(model, asked.selector))
    tickets = Ticket.objects.using(connection.alias).waiting().for_rows_of(model)
    counts = {
        "match": Count("pk"),
        "leased": Count("pk", filter=busy & ~Q(holder="")),
        "resting": Count("pk", filter=busy & Q(holder="", in_service=True)),
        "out": Count("pk", filter=Q(in_service=False)),
    }
    try:
        with answer_timeout(A_LITTLE):
            found = retrying(connection, lambda: rows.aggregate(**counts))
            others = retrying(connection, tickets.exclude(holder=holder).count)
        return THERE_IS.format(**found, others=others)
    except DatabaseUnavailable as error:
        return f": {error}"
    except (DatabaseError, InterfaceError, ResourcePoolError):
        return ""

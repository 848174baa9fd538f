"""Clears what dead holders left behind, and tells of it."""

from functools import partial
from typing import Any

from django.db import connections

from resourcepool.database.retry import Unsettled, retrying
from resourcepool.dialect import MicrosUntil
from resourcepool.events import say
from resourcepool.history.held import ran_out
from resourcepool.leases import verbs
from resourcepool.leases.short_transactions import briefly
from resourcepool.signals import Fact, What, tell

MOST = 1_000  # rows of one pool in one sweep


def clear_expired(model: Any) -> int:
    """Clear the holder of rows whose lease ran out without a release, and tell of each; returns how many.

    They were free before and are free after it. The fence goes up as with a release, so whoever comes late finds out.
    """
    using = model.pool.using
    connection = connections[using]
    expired = verbs.rows_of(connection, model).expired().annotate(left=MicrosUntil("busy_before"))
    rows = retrying(connection, lambda: list(expired.values_list("pk", "fence", "holder", "left")[:MOST]))
    if not rows:
        return 0
    lasted = ran_out(model, [(pk, fence, -left / 1_000_000) for pk, fence, _holder, left in rows])
    cleared = briefly(using, partial(_clear, model, rows), settle=partial(_cleared, model, rows))
    for pk, fence, holder, left in cleared:
        reason = say("found_late", seconds=round(-left / 1_000_000))
        seconds = lasted.get((pk, fence))
        tell(Fact(What.EXPIRED, model, using, pk, fence, holder, reason, seconds=seconds))
    return len(cleared)


def _clear(model: Any, rows: list[Any]) -> list[Any]:
    """Clear those of ``rows`` that nobody has claimed meanwhile; return these.

    What somebody has locked, a holder whose work is still guarded for example, is left for the next sweep.
    """
    connection = connections[model.pool.using]
    skips = connection.features.has_select_for_update_skip_locked
    again = verbs.rows_of(connection, model).filter(pk__in=[row[0] for row in rows]).order_by("pk")
    fences = dict(again.select_for_update(skip_locked=skips).values_list("pk", "fence"))
    # An expired lease is never renewed: under the same fence it is still the expired one.
    still = [row for row in rows if fences.get(row[0]) == row[1]]
    if still:
        verbs.release_all(connection, model, [(pk, fence) for pk, fence, *_ in still], 0.0)
    return still


def _cleared(model: Any, rows: list[Any]) -> list[Any]:
    """Return those of ``rows`` that were cleared before the connection was lost; raises Unsettled if there are none."""
    now = verbs.rows_of(connections[model.pool.using], model).filter(pk__in=[row[0] for row in rows], holder="")
    fences = dict(now.values_list("pk", "fence"))
    cleared = [row for row in rows if fences.get(row[0]) == row[1] + 1]
    if not cleared:
        raise Unsettled
    return cleared

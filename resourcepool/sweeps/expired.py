"""Tells of leases that ran out, and clears what their holders left behind."""

from typing import Any

from django.db import connections, router
from django.db.models import Exists, OuterRef

from resourcepool.database.retry import retrying
from resourcepool.dialect import MicrosUntil
from resourcepool.events import say
from resourcepool.history.held import ran_out
from resourcepool.history.models import Event
from resourcepool.history.recorder import recorder
from resourcepool.leases import verbs
from resourcepool.resources.queryset import end_leases
from resourcepool.signals import Fact, What, tell

MOST = 1_000  # rows, or events, of one pool in one sweep
LOOK_BACK = 900.0  # seconds
# A release that gives the row straight to a waiter raises the fence by one, too.
TOLD = (What.EXPIRED, What.RELEASED, What.HANDED_OVER, What.FREED)


def clear_expired(model: Any) -> int:
    """Clear the holder of rows whose lease ran out without a release, and tell of each; returns how many.

    They were free before and are free after it. The fence goes up as with a release, so a late holder finds out.
    """
    using = router.db_for_write(model)
    connection = connections[using]
    expired = verbs.rows_of(connection, model).expired().annotate(left=MicrosUntil("busy_before"))
    rows = retrying(connection, lambda: list(expired.values_list("pk", "fence", "holder", "left")[:MOST]))
    if not rows:
        return 0
    lasted = ran_out(model, [(pk, fence, -left / 1_000_000) for pk, fence, _holder, left in rows])
    # Locked rows, of holders inside ``guard`` for example, are left for the next sweep. An expired lease is never
    # renewed: under the same fence it is still the expired one.
    skips = connection.features.has_select_for_update_skip_locked
    cleared = end_leases(verbs.rows_of(connection, model), rows, skips=skips)
    for pk, fence, holder, left in cleared:
        reason = say("found_late", seconds=round(-left / 1_000_000))
        seconds = lasted.get((pk, fence))
        tell(Fact(What.EXPIRED, model, using, pk, fence, holder, reason, seconds=seconds))
    return len(cleared)


def tell_overtaken(model: Any) -> int:
    """Tell of leases that the history saw begin but not end, and whose row another holder got under the next fence.

    A release to nobody raises the fence, so two grants with fences that follow each other have none between them.
    Returns how many. What it tells is written when it returns, so that the next sweep, wherever it runs, tells none of
    them again; raises DatabaseUnavailable.
    """
    recorder.flush()
    using = router.db_for_write(Event)
    events = Event.objects.using(using).filter(pool=model._meta.label_lower)
    same_row = events.filter(row=OuterRef("row"))
    successor = same_row.acquisitions().filter(fence=OuterRef("fence") + 1)
    told = same_row.filter(fence=OuterRef("fence"), what__in=TOLD)
    begun = events.filter(what=What.ACQUIRED).since(LOOK_BACK)
    lost = begun.filter(Exists(successor), ~Exists(told)).order_by("pk")
    found = retrying(connections[using], lambda: list(lost.values_list("row", "fence", "holder")[:MOST]))
    for row, fence, holder in found:
        tell(Fact(What.EXPIRED, model, using, row, fence, holder, say("acquired_since")))
    recorder.flush()
    return len(found)

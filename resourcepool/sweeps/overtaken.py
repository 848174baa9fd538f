"""Tells of leases that ran out and whose rows were claimed again before any sweep saw them."""

from typing import Any

from django.db import connections, router
from django.db.models import Exists, OuterRef

from resourcepool.database.retry import retrying
from resourcepool.events import say
from resourcepool.history.models import Event
from resourcepool.history.recorder import recorder
from resourcepool.signals import Fact, What, tell

MOST = 1_000  # events in one sweep
LOOK_BACK = 900.0  # seconds


def tell_overtaken(model: Any) -> int:
    """Tell of leases that the history saw begin but not end, and whose row went to somebody else under the next fence.

    A release raises the fence, so two grants with fences that follow each other have no release between them.
    Returns how many. What it tells is written when it returns, so that the next sweep, wherever it runs, tells none of
    them again; raises DatabaseUnavailable.
    """
    recorder.flush()
    using = router.db_for_write(Event)
    events = Event.objects.using(using).filter(pool=model._meta.label_lower)
    same_row = events.filter(row=OuterRef("row"))
    successor = same_row.acquisitions().filter(fence=OuterRef("fence") + 1)
    told = same_row.filter(fence=OuterRef("fence"), what__in=(What.EXPIRED, What.HANDED_OVER, What.REVOKED))
    begun = events.filter(what=What.ACQUIRED).since(LOOK_BACK)
    lost = begun.filter(Exists(successor), ~Exists(told)).order_by("pk")
    found = retrying(connections[using], lambda: list(lost.values_list("row", "fence", "holder")[:MOST]))
    for row, fence, holder in found:
        tell(Fact(What.EXPIRED, model, using, row, fence, holder, say("acquired_since")))
    recorder.flush()
    return len(found)

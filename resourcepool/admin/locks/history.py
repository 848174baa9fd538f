"""What happened to a name that has several rows: to all of them, the latest first."""

from typing import Any

from django.db import router
from django.db.models.functions import Substr

from resourcepool.admin.timeline import EVENTS
from resourcepool.history.models import Event
from resourcepool.locks.models import NUMBER


def timeline_of_name(row: Any, before: str) -> list[Event]:
    """Return what happened to the rows of the name of ``row``: EVENTS, and one if there are more.

    Args:
        before: as in ``timeline``; the number in it counts: the fences of several rows are in no order.
    """
    begins = f"{row.name}{NUMBER}"
    events = Event.objects.using(router.db_for_read(Event)).filter(
        pool=row._meta.label_lower, row__begins=begins
    )
    # What is called "a#b" begins like "a".
    events = events.annotate(number=Substr("row", len(begins) + 1)).exclude(number__contains=NUMBER)
    number = before.partition("-")[2]
    if number.isdecimal() and len(before) < 40:
        events = events.filter(pk__lt=int(number))
    return list(events.order_by("-pk")[: EVENTS + 1])

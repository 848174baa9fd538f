"""Snoozed alarms: folded away on the dashboard for an hour, for all users.

A snooze is an event of the history: all see it, with the name of who did it, and it ends by itself.
"""

from dataclasses import dataclass

from django.db import router

from resourcepool.db.dialect import DbNow
from resourcepool.history.models import MAX_ACTOR, MAX_ROW, Event, storable
from resourcepool.signals import EventKind, alarm_snoozed
from resourcepool.status.snapshots import fetch_all

HOUR = 3_600.0  # seconds
POOL = "alarm"  # of these events; ``row`` is the id of the alarm


@dataclass(frozen=True, slots=True)
class Snooze:
    """``by``: the name of the operator; ``left``: seconds until it ends."""

    by: str
    left: float


def snooze(alarm: str, by: str, seconds: float = HOUR) -> None:
    """Snooze the alarm with this id for ``seconds``, an hour at most; 0 ends its snooze."""
    columns = {"pool": POOL, "row": storable(alarm, MAX_ROW), "actor": storable(by, MAX_ACTOR)}
    seconds = min(seconds, HOUR)
    Event.objects.create(at=DbNow(), what=EventKind.SNOOZED, seconds=seconds, **columns)
    alarm_snoozed.send_robust(sender=Event, alarm=alarm, by=by, seconds=seconds)


def snoozes() -> dict[str, Snooze]:
    """Return {id of an alarm: its snooze}."""
    events = Event.objects.using(router.db_for_write(Event)).filter(pool=POOL, what=EventKind.SNOOZED)
    last = {event.row: event for event in fetch_all(events.since(HOUR).with_age().order_by("pk"))}
    found = {row: Snooze(event.actor, (event.seconds or 0.0) - event.age) for row, event in last.items()}
    return {row: snooze for row, snooze in found.items() if snooze.left > 0}


def key_of(alarm: str) -> str:
    """Return the key of an alarm in ``snoozes``."""
    return storable(alarm, MAX_ROW)

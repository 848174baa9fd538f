"""Since when locks are held, and who held them before: from the history, where it has these grants."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import router

from resourcepool.history.models import Event
from resourcepool.signals import EventKind, is_recorded
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.snapshots import fetch_all

GRANTS = sorted(
    (
        *(EventKind.ACQUIRED, EventKind.RELEASED, EventKind.HANDED_OVER),
        *(EventKind.LOST, EventKind.EXPIRED, EventKind.REVOKED),
    )
)


@dataclass(frozen=True, slots=True)
class Before:
    """The grant of a lock before the current one.

    Attributes:
        what: its last event; "acquired": its end is not recorded.
        ago: seconds since that event.
    """

    holder: str
    what: EventKind
    ago: float


def held_for(kind: LockKind, keys: Mapping[str, int]) -> dict[str, float]:
    """Return {key: seconds since its grant} for those in the history; one query, with permits two.

    Args:
        keys: {key of a held row: its fence}; of permits, the fence is read again.
    """
    if not keys or not kind.is_held or not is_recorded(kind.model):
        return {}
    fences = keys
    if kind.has_permits:
        fences = dict(fetch_all(kind.rows().filter(pk__in=keys).values_list("pk", "fence")))
    begun = _events(kind, fences, set(fences.values())).filter(what=EventKind.ACQUIRED)
    return {event.row: event.age for event in fetch_all(begun) if event.fence == fences[event.row]}


def held_before(kind: LockKind, names: Mapping[str, tuple[int, bool]]) -> dict[str, Before]:
    """Return {name of a lock: the grant before the current or last one} for those in the history; one query.

    Args:
        names: {name: its fence, whether it is held}.
    """
    if not names or not kind.is_held or not is_recorded(kind.model):
        return {}
    # A grant and a release increase the fence; after a hand-over, or without a release, there is only the next grant.
    fences = {
        name: {fence - 2, fence - 1} if held else {fence - 1, fence} for name, (fence, held) in names.items()
    }
    events = _events(kind, fences, set().union(*fences.values())).filter(what__in=GRANTS)
    return {
        event.row: Before(event.holder, EventKind(event.what), event.age)
        for event in fetch_all(events.order_by("fence", "pk"))
        if event.fence in fences[event.row]
    }


def _events(kind: LockKind, rows: Iterable[str], fences: Iterable[int]) -> Any:
    events = Event.objects.using(router.db_for_read(Event)).with_age()
    return events.filter(pool=kind.model._meta.label_lower, row__in=list(rows), fence__in=fences)

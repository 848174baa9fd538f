"""The waiters of a pool: what they want, who is in front, and why they are not served."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django.core.exceptions import FieldError, ValidationError
from django.db import connections
from django.db.models import Count, F, Min, Q
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from resourcepool.database.retry import retrying
from resourcepool.dialect import DbNow, MicrosUntil
from resourcepool.resources.registry import everything
from resourcepool.resources.selectors import wanted
from resourcepool.resources.state import State
from resourcepool.status.durations import ago, duration
from resourcepool.status.pools import in_state
from resourcepool.status.reading import fetched
from resourcepool.waiting.models import Ticket

SHOWN = 5  # of those in front
MAX_WISH = 120  # characters


@dataclass(frozen=True, slots=True)
class InLine:
    """One place in line; times in seconds.

    Attributes:
        wants: the selectors, {field: value or values}; {}: any resource. ``count``: how many at once.
        waited: for how long.
    """

    ticket: int
    pool: str
    holder: str
    wants: Mapping[str, Any]
    count: int
    priority: int
    waited: float

    @property
    def wish(self) -> str:
        """What it wants: "country=AQ"; "": any resource. One printable line of at most ``MAX_WISH`` characters."""
        # It goes into log lines; a value is whatever a program asked for.
        wants = ", ".join(f"{name}={value}" for name, value in self.wants.items())
        said = "".join(c if c.isprintable() else "?" for c in wants)
        return said if len(said) <= MAX_WISH else f"{said[: MAX_WISH - 3]}..."


@dataclass(frozen=True, slots=True)
class Waiting(InLine):
    """A place in line, and what prevents its service.

    Attributes:
        ahead: how many are served before; ``in_front``: the first of them.
        matching: how many of the matching resources are in each state.
        next_free_in: seconds until the next of those leases or rests ends, unless it is renewed; None: none runs.
    """

    ahead: int
    in_front: list[InLine]
    matching: Mapping[State, int]
    next_free_in: float | None

    ALSO: ClassVar = ("because",)

    @property
    def because(self) -> str:
        """Why it is not served, in one sentence."""
        return why_not_served(self)


def waiting(model: Any, holder: str, limit: int = 10) -> list[Waiting]:
    """Return up to ``limit`` places of exactly this holder in the line for ``model``, the first to be served first."""
    return [_waiting(model, row) for row in _in_line(model).filter(holder=holder)[:limit]]


def why_longest_waits(model: Any) -> str:
    """Return what the longest waiter for ``model`` wants and why it is not served; "": nobody waits any more."""
    rows = _in_line(model).order_by("asked_at", "pk")
    row = retrying(connections[model.pool.using], rows.first)
    if row is None:
        return ""
    one = _waiting(model, row)
    wants = _("It wants %s.") % one.wish if one.wants else ""
    return f"{wants} {one.because}".lstrip()


def why_not_served(one: Waiting) -> str:
    """Return why this waiter is not served, in one sentence."""
    total = sum(one.matching.values())
    free, leased = one.matching[State.FREE], one.matching[State.LEASED]
    resting = one.matching[State.COOLING] + one.matching[State.QUARANTINED]
    if not total:
        return _("No resource matches what it wants.")
    if not free + leased + resting:
        return _("None of the %d that match is in service.") % total
    if free + leased + resting < one.count:
        numbers = {"count": one.count, "there": free + leased + resting}
        return _("It wants %(count)d at once, and only %(there)d that match are in service.") % numbers
    if free >= one.count:
        if one.ahead:
            return _("%(free)d that match are free; %(ahead)d in front of it are served first.") % {
                "free": free,
                "ahead": one.ahead,
            }
        return _("%d that match are free: it is served in a moment, unless its process is stopped.") % free
    return " ".join([_occupied(free, leased, resting), *_soon(one.next_free_in)])


def _occupied(free: int, leased: int, resting: int) -> str:
    number = leased + resting
    text = ngettext(
        "The one that matches is taken (%(leased)d leased, %(resting)d cooling down or quarantined).",
        "Of those that match %(free)d are free, %(leased)d leased, %(resting)d cooling down or quarantined.",
        number + free,
    )
    return text % {"free": free, "leased": leased, "resting": resting}


def _soon(seconds: float | None) -> list[str]:
    text = _("The next may come free in %s, unless its lease is renewed.")
    return [] if seconds is None else [text % duration(seconds)]


def _in_line(model: Any) -> Any:
    tickets = Ticket.objects.using(model.pool.using).waiting().for_rows_of(model)
    return tickets.annotate(db_asked=MicrosUntil("asked_at")).order_by("priority", "pk")


def _waiting(model: Any, row: Any) -> Waiting:
    before, place = Q(priority__lt=row.priority) | Q(priority=row.priority, pk__lt=row.pk), _place(row)
    connection, in_front = connections[model.pool.using], _in_line(model).filter(before)
    found = _matching(model, json.dumps(place["wants"]))
    next_free = found.get("n_next_free_in")
    return Waiting(
        **place,
        ahead=retrying(connection, in_front.count),
        in_front=[InLine(**_place(one)) for one in fetched(in_front[:SHOWN])],
        matching={state: found.get(f"n_{state.value}", 0) for state in State},
        next_free_in=None if next_free is None else next_free / 1_000_000,
    )


def _place(row: Any) -> dict[str, Any]:
    """Return the fields of ``InLine``."""
    same = {name: getattr(row, name) for name in ("pool", "holder", "count", "priority")}
    return {**same, "ticket": row.pk, "wants": _wishes(row.selector), "waited": ago(row.db_asked)}


def _wishes(selector: str) -> Mapping[str, Any]:
    try:
        found = json.loads(selector)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"?": "?"}  # written by another version; it matches nothing


def _matching(model: Any, selector: str) -> dict[str, Any]:
    """Return how many matching rows are in each state; nothing when this version does not understand the selector."""
    counts = {f"n_{state.value}": Count("pk", filter=in_state(state)) for state in State}
    busy = Q(in_service=True, busy_before__gt=DbNow())
    soonest = Min(MicrosUntil(F("busy_before")), filter=busy)
    try:
        rows = everything(model).filter(wanted(model, selector))
        return retrying(connections[model.pool.using], lambda: rows.aggregate(**counts, n_next_free_in=soonest))
    except (FieldError, ValidationError, AttributeError, TypeError, ValueError):
        return {}

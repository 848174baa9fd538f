"""The waiters of a pool: their selectors, who is ahead of them, and why they are not served."""

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
from resourcepool.dialect import DbNow
from resourcepool.resources.registry import all_resources
from resourcepool.resources.selectors import selector_filter
from resourcepool.resources.state import State
from resourcepool.status.pools import in_state
from resourcepool.status.snapshots import Since, Until, duration, fetch_all
from resourcepool.waiting.models import Ticket

SHOWN = 5  # waiters ahead
MAX_WISH = 120  # characters


@dataclass(frozen=True, slots=True)
class TicketStatus:
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
    def wants_text(self) -> str:
        """Its selectors: "country=AQ"; "": any resource. One printable line of at most ``MAX_WISH`` characters."""
        # It goes into log lines, and values come from programs.
        wants = ", ".join(f"{name}={value}" for name, value in self.wants.items())
        said = "".join(c if c.isprintable() else "?" for c in wants)
        return said if len(said) <= MAX_WISH else f"{said[: MAX_WISH - 3]}..."


@dataclass(frozen=True, slots=True)
class WaiterStatus(TicketStatus):
    """A place in line, and what prevents its service.

    Attributes:
        ahead: how many are served before; ``in_front``: the first of them.
        matching: how many of the matching resources are in each state.
        next_free_in: seconds until the next of those leases or rests ends, unless it is renewed; None: none runs.
    """

    ahead: int
    in_front: list[TicketStatus]
    matching: Mapping[State, int]
    next_free_in: float | None

    ALSO: ClassVar = ("explanation",)

    @property
    def explanation(self) -> str:
        """Why it is not served, in one sentence."""
        total = sum(self.matching.values())
        free, leased = self.matching[State.FREE], self.matching[State.LEASED]
        resting = self.matching[State.COOLING] + self.matching[State.QUARANTINED]
        serving = free + leased + resting
        if not total:
            return _("No resource matches what it wants.")
        if not serving:
            return _("None of the %d that match is in service.") % total
        if serving < self.count:
            numbers = {"count": self.count, "there": serving}
            return _("It wants %(count)d at once, and only %(there)d that match are in service.") % numbers
        if free >= self.count:
            if not self.ahead:
                return (
                    _("%d that match are free: it is served in a moment, unless its process is stopped.") % free
                )
            numbers = {"free": free, "ahead": self.ahead}
            return _("%(free)d that match are free; %(ahead)d in front of it are served first.") % numbers
        text = ngettext(
            "The one that matches is taken (%(leased)d leased, %(resting)d cooling down or quarantined).",
            "Of those that match %(free)d are free, %(leased)d leased, %(resting)d cooling down or quarantined.",
            serving,
        ) % {"free": free, "leased": leased, "resting": resting}
        if self.next_free_in is None:
            return text
        soon = _("The next may come free in %s, unless its lease is renewed.")
        return f"{text} {soon % duration(self.next_free_in)}"


def waiters_of(model: Any, holder: str, limit: int = 10) -> list[WaiterStatus]:
    """Return up to ``limit`` waiters of exactly this holder for ``model``, in the order of service."""
    return [_waiting(model, row) for row in _in_line(model).filter(holder=holder)[:limit]]


def explain_longest_wait(model: Any) -> str:
    """Return what the longest waiter for ``model`` wants and why it is not served; "": nobody waits."""
    rows = _in_line(model).order_by("asked_at", "pk")
    row = retrying(connections[model.pool.using], rows.first)
    if row is None:
        return ""
    one = _waiting(model, row)
    wants = _("It wants %s.") % one.wants_text if one.wants else ""
    return f"{wants} {one.explanation}".lstrip()


def _in_line(model: Any) -> Any:
    tickets = Ticket.objects.using(model.pool.using).waiting().for_rows_of(model)
    return tickets.annotate(waited=Since("asked_at")).order_by("priority", "pk")


def _waiting(model: Any, row: Any) -> WaiterStatus:
    before, place = Q(priority__lt=row.priority) | Q(priority=row.priority, pk__lt=row.pk), _place(row)
    in_front = _in_line(model).filter(before)
    found = _matching(model, json.dumps(place["wants"]))
    return WaiterStatus(
        **place,
        ahead=retrying(connections[model.pool.using], in_front.count),
        in_front=[TicketStatus(**_place(one)) for one in fetch_all(in_front[:SHOWN])],
        matching={state: found.get(f"n_{state.value}", 0) for state in State},
        next_free_in=found.get("n_next_free_in"),
    )


def _place(row: Any) -> dict[str, Any]:
    """Return the fields of ``TicketStatus``."""
    same = {name: getattr(row, name) for name in ("pool", "holder", "count", "priority", "waited")}
    return {**same, "ticket": row.pk, "wants": _wishes(row.selector)}


def _wishes(selector: str) -> Mapping[str, Any]:
    try:
        found = json.loads(selector)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"?": "?"}  # another version wrote it; it matches nothing


def _matching(model: Any, selector: str) -> dict[str, Any]:
    """Return how many matching rows are in each state; {} if this version does not understand the selector."""
    counts = {f"n_{state.value}": Count("pk", filter=in_state(state)) for state in State}
    busy = Q(in_service=True, busy_before__gt=DbNow())
    soonest = Min(Until(F("busy_before")), filter=busy)
    try:
        rows = all_resources(model).filter(selector_filter(model, selector))
        return retrying(connections[model.pool.using], lambda: rows.aggregate(**counts, n_next_free_in=soonest))
    except (FieldError, ValidationError, AttributeError, TypeError, ValueError):
        return {}

"""The waiters of a pool: their selectors, the waiters ahead of them, and why they are not served."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django.core.exceptions import FieldError, ValidationError
from django.db import connections
from django.db.models import Count, F, Min, Q

from resourcepool.db.dialect import DbNow
from resourcepool.db.retry import retrying
from resourcepool.resources.registry import all_resources
from resourcepool.resources.selectors import selector_filter
from resourcepool.resources.state import State
from resourcepool.status.resources.pools import in_state
from resourcepool.status.snapshots import Since, Until, fetch_all
from resourcepool.status.times import duration
from resourcepool.text import printable, shortened
from resourcepool.translation import gettext as _
from resourcepool.waiting.models import Ticket

MAX_AHEAD = 5  # waiters that are listed
MAX_WANTS = 120  # characters


@dataclass(frozen=True, slots=True)
class TicketStatus:
    """A waiter's ticket; times in seconds.

    Attributes:
        wants: the selectors, {field: value or values}; {}: any resource. ``count``: number of resources at once.
        waited: since the request.
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
        """Its selectors, "country=AQ", as a printable line of at most ``MAX_WANTS`` characters; "": any resource."""
        # Values come from programs, and the text is logged.
        wants = ", ".join(f"{name}={value}" for name, value in self.wants.items())
        return shortened(printable(wants), MAX_WANTS)


@dataclass(frozen=True, slots=True)
class WaiterStatus(TicketStatus):
    """A waiter's ticket, and why it is not served.

    Attributes:
        ahead: number of waiters ahead; ``in_front``: the first of them.
        matching: number of matching resources in each state.
        next_free_in: seconds until the next of their leases or cool-downs ends, unless renewed; None: none is active.
    """

    ahead: int
    in_front: list[TicketStatus]
    matching: Mapping[State, int]
    next_free_in: float | None

    ALSO: ClassVar = ("explanation",)

    @property
    def explanation(self) -> str:
        """Why it is not served, in one or two sentences."""
        total = sum(self.matching.values())
        free, leased = self.matching[State.FREE], self.matching[State.LEASED]
        resting = self.matching[State.COOLING] + self.matching[State.QUARANTINED]
        serving = free + leased + resting
        if not total:
            return _("No resource matches its selectors.")
        if not serving:
            return _("No matching resource is in service (matching: %d).") % total
        if serving < self.count:
            numbers = {"count": self.count, "there": serving}
            return _("It wants %(count)d at once; matching resources in service: %(there)d.") % numbers
        if free >= self.count:
            if not self.ahead:
                text = _("Free matching resources: %d; it is served at once unless its process is stopped.")
                return text % free
            numbers = {"free": free, "ahead": self.ahead}
            return _("Free matching resources: %(free)d; waiters ahead of it: %(ahead)d.") % numbers
        text = _(
            "Matching resources: %(free)d free, %(leased)d leased, %(resting)d cooling down or quarantined."
        )
        text %= {"free": free, "leased": leased, "resting": resting}
        if self.next_free_in is None:
            return text
        next_free = _("The next is free in %s unless its lease is renewed.")
        return f"{text} {next_free % duration(self.next_free_in)}"


def waiters_of(model: Any, holder: str, limit: int = 10) -> list[WaiterStatus]:
    """Return up to ``limit`` waiters for ``model`` with exactly this holder, in the order of service."""
    return [_waiter_status(model, row) for row in _tickets(model).filter(holder=holder)[:limit]]


def explain_longest_wait(model: Any) -> str:
    """Return what the longest waiter for ``model`` wants and why it is not served; "" without waiters."""
    rows = _tickets(model).order_by("asked_at", "pk")
    row = retrying(connections[model.pool.using], rows.first)
    if row is None:
        return ""
    waiter = _waiter_status(model, row)
    wants = _("It wants %s.") % waiter.wants_text if waiter.wants else ""
    return f"{wants} {waiter.explanation}".lstrip()


def _tickets(model: Any) -> Any:
    tickets = Ticket.objects.using(model.pool.using).waiting().for_rows_of(model)
    return tickets.annotate(waited=Since("asked_at")).order_by("priority", "pk")


def _waiter_status(model: Any, row: Any) -> WaiterStatus:
    before = Q(priority__lt=row.priority) | Q(priority=row.priority, pk__lt=row.pk)
    in_front = _tickets(model).filter(before)
    ahead = retrying(connections[model.pool.using], in_front.count)
    first = [TicketStatus(**_ticket_fields(row_ahead)) for row_ahead in fetch_all(in_front[:MAX_AHEAD])]
    return waiter_status(row, ahead, matching(model, row.selector), first)


def waiter_status(
    row: Any, ahead: int, counts: Mapping[str, Any], in_front: Sequence[TicketStatus] = ()
) -> WaiterStatus:
    """Return the status of the ticket ``row``, which is annotated with ``waited``.

    Args:
        ahead: number of waiters ahead; ``in_front``: the first of them.
        counts: of the matching resources, from ``matching``.
    """
    return WaiterStatus(
        **_ticket_fields(row),
        ahead=ahead,
        in_front=list(in_front),
        matching={state: counts.get(f"n_{state.value}", 0) for state in State},
        next_free_in=counts.get("n_next_free_in"),
    )


def _ticket_fields(row: Any) -> dict[str, Any]:
    same = {name: getattr(row, name) for name in ("pool", "holder", "count", "priority", "waited")}
    return {**same, "ticket": row.pk, "wants": _selectors(row.selector)}


def _selectors(selector: str) -> Mapping[str, Any]:
    try:
        data = json.loads(selector)
    except ValueError:
        data = None
    return data if isinstance(data, dict) else {"?": "?"}  # written by another version; matches no resource


def matching(model: Any, selector: str) -> dict[str, Any]:
    """Return the number of matching rows in each state; {} if this version does not support the selector."""
    selector = json.dumps(_selectors(selector))
    counts = {f"n_{state.value}": Count("pk", filter=in_state(state)) for state in State}
    busy = Q(in_service=True, busy_before__gt=DbNow())
    soonest = Min(Until(F("busy_before")), filter=busy)
    try:
        rows = all_resources(model).filter(selector_filter(model, selector))
        return retrying(connections[model.pool.using], lambda: rows.aggregate(**counts, n_next_free_in=soonest))
    except (FieldError, ValidationError, AttributeError, TypeError, ValueError):
        return {}

"""What a waiter for a resource wants, and why it is not served."""

import json
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import FieldError, ValidationError
from django.db import connections
from django.db.models import Count, F, Min, Q

from resourcepool.db.dialect import DbNow
from resourcepool.db.retry import retrying
from resourcepool.resources.registry import all_resources
from resourcepool.resources.selectors import selector_filter
from resourcepool.resources.state import State
from resourcepool.status.resources.pools import in_state
from resourcepool.status.snapshots import Until
from resourcepool.status.times import duration
from resourcepool.text import printable, shortened
from resourcepool.translation import gettext as _

MAX_WANTS = 120  # characters


def wants(row: Any) -> str:
    """Return the selectors and the number of resources of a ticket as a printable line; "": any single resource."""
    # Values come from programs, and the text is logged.
    texts = [f"{name}={value}" for name, value in _selectors(row.selector).items()]
    at_once = [_("%d at once") % row.count] if row.count > 1 else []
    return shortened(printable(", ".join([*texts, *at_once])), MAX_WANTS)


def why_not_served(count: int, ahead: int, counts: Mapping[str, Any]) -> str:
    """Return why a waiter is not served, in one or two sentences.

    Args:
        count: the number of resources that it wants.
        ahead: the number of waiters before it.
        counts: of the matching resources, from ``matching``.
    """
    by_state: dict[State, int] = {state: counts.get(f"n_{state.value}", 0) for state in State}
    total, free, leased = sum(by_state.values()), by_state[State.FREE], by_state[State.LEASED]
    resting = by_state[State.COOLING] + by_state[State.QUARANTINED]
    serving = free + leased + resting
    if not total:
        return _("No resource matches its selectors.")
    if not serving:
        return _("No matching resource is in service (matching: %d).") % total
    if serving < count:
        numbers = {"count": count, "there": serving}
        return _("It wants %(count)d at once; matching resources in service: %(there)d.") % numbers
    if free >= count and not ahead:
        return _("Free matching resources: %d; it is served at once unless its process is stopped.") % free
    if free >= count:
        numbers = {"free": free, "ahead": ahead}
        return _("Free matching resources: %(free)d; waiters ahead of it: %(ahead)d.") % numbers
    text = _("Matching resources: %(free)d free, %(leased)d leased, %(resting)d cooling down or quarantined.")
    text %= {"free": free, "leased": leased, "resting": resting}
    if (next_free_in := counts.get("n_next_free_in")) is None:
        return str(text)
    next_free = _("The next is free in %s unless its lease is renewed.")
    return f"{text} {next_free % duration(next_free_in)}"


def _selectors(selector: str) -> Mapping[str, Any]:
    try:
        data = json.loads(selector)
    except ValueError:
        data = None
    return data if isinstance(data, dict) else {"?": "?"}  # written by another version; matches no resource


def matching(model: Any, selector: str) -> dict[str, Any]:
    """Return the number of matching rows in each state, and the seconds until the next lease or cool-down ends.

    {} if this version does not support the selector.
    """
    selector = json.dumps(_selectors(selector))
    counts = {f"n_{state.value}": Count("pk", filter=in_state(state)) for state in State}
    busy = Q(in_service=True, busy_before__gt=DbNow())
    soonest = Min(Until(F("busy_before")), filter=busy)
    try:
        rows = all_resources(model).filter(selector_filter(model, selector))
        return retrying(connections[model.pool.using], lambda: rows.aggregate(**counts, n_next_free_in=soonest))
    except (FieldError, ValidationError, AttributeError, TypeError, ValueError):
        return {}

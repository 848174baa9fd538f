"""The state of a resource, in one word."""

import datetime
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

MAX_REASON = 200

# Operators' decisions about a resource, with their reasons.
STATE_COLUMNS = frozenset(
    {"in_service", "status", "reason", "until", "strikes", "struck_at", "verdict", "checked_at", "latency"}
)


class Status(models.TextChoices):
    """The reason for a resource's state; busy_before and in_service decide whether it may be leased."""

    IN_SERVICE = "in_service", _("in service")
    QUARANTINED = "quarantined", _("quarantined")
    OUT_OF_SERVICE = "out_of_service", _("out of service")
    RESERVED = "reserved", _("reserved")
    RETIRED = "retired", _("retired")


class Verdict(models.TextChoices):
    """The result of the last health check; "" before the first one."""

    OK = "ok", _("ok")
    BAD = "bad", _("bad")
    UNKNOWN = "unknown", _("unknown")


class State(models.TextChoices):
    """The states that people see; derived, never stored."""

    FREE = "free", _("free")
    LEASED = "leased", _("leased")
    COOLING = "cooling", _("cooling down")
    QUARANTINED = "quarantined", _("quarantined")
    DRAINING = "draining", _("draining")
    OUT = "out", _("out of service")
    RESERVED = "reserved", _("reserved")
    RETIRED = "retired", _("retired")


OUT_OF_SERVICE_STATES: dict[str, State] = {
    Status.QUARANTINED: State.QUARANTINED,  # since its lease
    Status.RESERVED: State.RESERVED,
    Status.RETIRED: State.RETIRED,
}


@dataclass(frozen=True, slots=True)
class StateDetails:
    """A resource at one moment: its state, and the parts of ``status``, ``reason`` and ``until`` that still apply."""

    state: State
    status: str
    reason: str
    until: datetime.datetime | None


def state_details(resource: Any, now: datetime.datetime) -> StateDetails:
    """Return the standing of ``resource`` at ``now``, by the database's clock.

    Nothing has to run for a quarantine to end, so the row keeps its reason after the end: it no longer applies then.
    """
    state = state_of(resource, now)
    if resource.in_service and (resource.until is None or resource.until <= now):
        return StateDetails(state, Status.IN_SERVICE, "", None)
    return StateDetails(state, resource.status, resource.reason, resource.until)


def state_of(resource: Any, now: datetime.datetime) -> State:
    """Return the state of ``resource`` at ``now``, by the database's clock (``DbNow``)."""
    is_parked = resource.until is not None and resource.until > now
    return state(
        resource.in_service, resource.status, resource.busy_before > now, bool(resource.holder), is_parked
    )


def state(in_service: bool, status: str, is_busy: bool, has_holder: bool, is_parked: bool) -> State:
    """Return the state that follows from these: ``is_parked`` is whether ``until`` is in the future."""
    if not in_service:
        return State.DRAINING if is_busy and has_holder else OUT_OF_SERVICE_STATES.get(status, State.OUT)
    if not is_busy:
        return State.FREE
    if has_holder:
        return State.LEASED
    return State.QUARANTINED if is_parked and status == Status.QUARANTINED else State.COOLING

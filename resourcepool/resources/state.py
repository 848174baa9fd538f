"""What a resource is doing, in one word."""

import datetime
from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

MAX_REASON = 200

# What operators decide about a resource, and why.
STATE_COLUMNS = frozenset(
    {"in_service", "status", "reason", "until", "strikes", "struck_at", "verdict", "checked_at", "latency"}
)


class Status(models.TextChoices):
    """Why a resource is where it is; whether it is handed out is decided by busy_before and in_service."""

    IN_SERVICE = "in_service", _("in service")
    QUARANTINED = "quarantined", _("quarantined")
    OUT_OF_SERVICE = "out_of_service", _("out of service")
    RESERVED = "reserved", _("reserved")
    RETIRED = "retired", _("retired")


class Verdict(models.TextChoices):
    """What the last validity check found; "" before the first one."""

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


PUT_AWAY = {Status.RESERVED: State.RESERVED, Status.RETIRED: State.RETIRED}


def state_of(resource: Any, now: datetime.datetime) -> State:
    """Return the state of ``resource`` at ``now``, by the database's clock (``DbNow``)."""
    busy = resource.busy_before > now
    if not resource.in_service:
        if busy and resource.holder:
            return State.DRAINING
        return PUT_AWAY.get(resource.status, State.OUT)
    if not busy:
        return State.FREE
    if resource.holder:
        return State.LEASED
    parked = resource.status == Status.QUARANTINED and resource.until is not None and resource.until > now
    return State.QUARANTINED if parked else State.COOLING

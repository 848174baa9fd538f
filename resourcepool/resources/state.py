"""What a resource is doing, in one word."""

import datetime
from typing import Any

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class State(models.TextChoices):
    """The states that people see; derived, never stored."""

    FREE = "free", _("free")
    LEASED = "leased", _("leased")
    COOLING = "cooling", _("cooling down")
    QUARANTINED = "quarantined", _("quarantined")
    DRAINING = "draining", _("draining")
    OUT = "out", _("out of service")
    RETIRED = "retired", _("retired")


def state_of(resource: Any, now: datetime.datetime | None = None) -> State:
    """Return the state of ``resource`` at ``now`` (the database's clock; this host's, if not given)."""
    now = now or timezone.now()
    busy = resource.busy_before > now
    if not resource.in_service:
        if busy and resource.holder:
            return State.DRAINING
        return State.RETIRED if resource.status == "retired" else State.OUT
    if not busy:
        return State.FREE
    if resource.holder:
        return State.LEASED
    parked = resource.status == "quarantined" and resource.until is not None and resource.until > now
    return State.QUARANTINED if parked else State.COOLING

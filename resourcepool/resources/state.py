"""The states of a resource: stored status, derived state, last health check, and how long a quarantine lasts."""

import datetime
import random
from dataclasses import dataclass
from typing import Any

from django.db import models

from resourcepool import options
from resourcepool.conf import setting
from resourcepool.translation import gettext_lazy as _

MAX_REASON = 200
STRIKES_RESET_AFTER = datetime.timedelta(days=1)  # without a strike
JITTER = 0.25  # of a quarantine

# Columns that operators and health checks decide, not the holder.
STATE_COLUMNS = frozenset(
    {"in_service", "status", "reason", "until", "strikes", "struck_at", "verdict", "checked_at", "latency"}
)


class Status(models.TextChoices):
    """The stored reason for the state of a resource; ``busy_before`` and ``in_service`` decide about leases."""

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
    """The state shown to people; derived, never stored."""

    FREE = "free", _("free")
    LEASED = "leased", _("leased")
    COOLING = "cooling", _("cooling down")
    QUARANTINED = "quarantined", _("quarantined")
    DRAINING = "draining", _("draining")
    OUT = "out", _("out of service")
    RESERVED = "reserved", _("reserved")
    RETIRED = "retired", _("retired")


OUT_OF_SERVICE_STATES: dict[str, State] = {
    Status.QUARANTINED: State.QUARANTINED,  # its quarantine began during a lease
    Status.RESERVED: State.RESERVED,
    Status.RETIRED: State.RETIRED,
}


@dataclass(frozen=True, slots=True)
class StateDetails:
    """The state of a resource at one moment, with ``status``, ``reason`` and ``until`` as far as they still apply."""

    state: State
    status: str
    reason: str
    until: datetime.datetime | None


def state_details(resource: Any, now: datetime.datetime) -> StateDetails:
    """Return the state of ``resource`` with details at ``now``, by the database's clock.

    A quarantine ends without an update of the row, so the row still has its old reason, which no longer applies.
    """
    state = state_of(resource, now)
    if resource.in_service and (resource.until is None or resource.until <= now):
        return StateDetails(state, Status.IN_SERVICE, "", None)
    return StateDetails(state, resource.status, resource.reason, resource.until)


def state_of(resource: Any, now: datetime.datetime) -> State:
    """Return the state of ``resource`` at ``now``, by the database's clock (``DbNow``)."""
    has_future_end = resource.until is not None and resource.until > now
    return state(
        resource.in_service, resource.status, resource.busy_before > now, bool(resource.holder), has_future_end
    )


def state(in_service: bool, status: str, is_busy: bool, has_holder: bool, has_future_end: bool) -> State:
    """Return the state for these columns; ``has_future_end``: ``until`` is in the future."""
    if not in_service:
        return State.DRAINING if is_busy and has_holder else OUT_OF_SERVICE_STATES.get(status, State.OUT)
    if not is_busy:
        return State.FREE
    if has_holder:
        return State.LEASED
    return State.QUARANTINED if has_future_end and status == Status.QUARANTINED else State.COOLING


def quarantine_limits() -> tuple[float, float]:
    """Return the first and the longest quarantine in seconds, from RESOURCEPOOL["QUARANTINE"]; raises BadOption."""
    chosen = setting("QUARANTINE")
    base = options.seconds("RESOURCEPOOL['QUARANTINE']['base']", chosen["base"], least=0.001)
    cap = options.seconds("RESOURCEPOOL['QUARANTINE']['cap']", chosen["cap"], least=base, most=30 * options.DAY)
    return base, cap


def quarantine_seconds(strikes: int, base: float, cap: float, chance: float | None = None) -> float:
    """Return the seconds of quarantine after consecutive strike number ``strikes``.

    Args:
        strikes: 1 for the first.
        base, cap: see ``quarantine_limits``.
        chance: 0 to 1, default random. It adds up to a quarter, so that resources that failed together return at
            different times.
    """
    spread = random.random() if chance is None else chance  # noqa: S311 (jitter)
    return min(base * 2.0 ** min(strikes - 1, 60) * (1 + JITTER * spread), cap)


def next_strikes(strikes: int, last: datetime.datetime | None, now: datetime.datetime) -> int:
    """Return the number of a new strike: one more than before, or 1 after a day without strikes."""
    return 1 if last is None or now - last > STRIKES_RESET_AFTER else strikes + 1

"""Checks the attributes of classes derived from ``Resource``: when they are used, and in ``manage.py check``."""

from typing import Any

from resourcepool import options
from resourcepool.exceptions import BadOption
from resourcepool.leases.terms import MIN_TTL
from resourcepool.resources.models import AbstractResource


def checked_pool(model: Any) -> Any:
    """Return the pool of ``model``; raises BadOption when it is not a resource model."""
    if not (isinstance(model, type) and issubclass(model, AbstractResource)):
        raise BadOption("model", model, "a Django model derived from AbstractResource")
    return model.pool


def checked_times(asked: Any) -> tuple[float, float]:
    """Return ttl and renewal interval in seconds, from a ``Resource`` or its class; raises BadOption."""
    ttl = options.seconds("occupation_delta", asked.occupation_delta, least=MIN_TTL)
    # Three chances: one renewal may be lost and one may be late.
    interval = options.seconds("occupation_interval", asked.occupation_interval, least=0.01, most=ttl / 3)
    return ttl, interval

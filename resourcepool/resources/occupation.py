"""What a class derived from ``Resource`` says of itself: checked when it is used, and by ``manage.py check``."""

from typing import Any

from resourcepool import options
from resourcepool.exceptions import BadOption
from resourcepool.leases.terms import MIN_TTL
from resourcepool.resources.models import AbstractResource


def checked_pool(model: Any) -> Any:
    """Return the pool of ``model``; raises BadOption when it is no model of resources."""
    if not (isinstance(model, type) and issubclass(model, AbstractResource)):
        raise BadOption("model", model, "a Django model derived from AbstractResource")
    return model.pool


def checked_times(asked: Any) -> tuple[float, float]:
    """Return ttl and renewal interval in seconds, as a ``Resource`` or its class has them; raises BadOption."""
    ttl = options.seconds("occupation_delta", asked.occupation_delta, least=MIN_TTL)
    # Three chances: one renewal may be lost and one may be late.
    interval = options.seconds("occupation_interval", asked.occupation_interval, least=0.01, most=ttl / 3)
    return ttl, interval

"""What one user may have of a pool over REST, from ``RESOURCEPOOL["REST_LIMITS"]``."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from django.db import connections

from resourcepool.conf import rest_limits
from resourcepool.database.retry import retrying
from resourcepool.exceptions import BadOption
from resourcepool.leases import verbs
from resourcepool.rest.errors import TooManyLeases
from resourcepool.waiting.request import Request as LeaseRequest
from resourcepool.waiting.request import Source


@dataclasses.dataclass(frozen=True)
class Quota:
    """How many leases of a pool one user may have at a time; ``most`` None: any number.

    Of two requests at the same moment for the last one both may be refused; never are both granted.

    Attributes:
        user: the end of the holder's name of all of them.
    """

    user: str
    most: int | None

    def refuse_if_spent(self, source: Source, *, with_this: bool) -> None:
        """Raise TooManyLeases if one more would be too many, or, ``with_this`` one that was just granted, there are."""
        if self.most is None:
            return
        connection = connections[source.using]
        rows = verbs.rows_of(connection, source.model).held().filter(holder__endswith=self.user)
        if retrying(connection, rows.count) + (not with_this) > self.most:
            what = f"{self.most} leases of {source.model._meta.label}"
            raise TooManyLeases(f"a user may have {what} at a time (RESOURCEPOOL['REST_LIMITS']): release one")


def quota(model: Any, user: str) -> Quota:
    """Return the quota of the user whose holders' names end so; raises BadOption for a wrong setting."""
    return Quota(user, rest_limits(model._meta.label)["leases"])


def apply_limits(model: Any, wanted: LeaseRequest, asked: Mapping[str, Any]) -> LeaseRequest:
    """Return the wish, with the limits in place of defaults beyond them; a longer cool-down of the pool's own stays.

    Raises:
        BadOption: the body asks for more, and for a wrong setting.
    """
    limits = rest_limits(model._meta.label)
    ttl, priority = min(wanted.terms.ttl, limits["ttl"]), max(wanted.priority, limits["priority"])
    max_hold = min(
        (one for one in (wanted.terms.max_hold, limits["max_hold"]) if one is not None), default=None
    )
    for name, is_beyond, words in (
        ("ttl", wanted.terms.ttl > limits["ttl"], "at most"),
        ("cooldown", wanted.terms.cooldown > limits["cooldown"], "at most"),
        ("max_hold", max_hold != wanted.terms.max_hold, "at most"),
        ("priority", wanted.priority < limits["priority"], "at least"),
    ):
        if is_beyond and asked.get(name) is not None:
            raise BadOption(name, asked[name], because=f"{words} {limits[name]:g} over REST (REST_LIMITS)")
    terms = dataclasses.replace(wanted.terms, ttl=ttl, max_hold=max_hold)
    return dataclasses.replace(wanted, terms=terms, priority=priority)

"""Limits for the users of the REST API, from ``RESOURCEPOOL["REST_LIMITS"]``."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from django.db import connections

from resourcepool.conf import rest_limits
from resourcepool.db.retry import retrying
from resourcepool.exceptions import BadOption
from resourcepool.leases import verbs
from resourcepool.leases.terms import Request as LeaseRequest
from resourcepool.rest.errors import TooManyLeases
from resourcepool.waiting.lease import Source


@dataclasses.dataclass(frozen=True)
class Quota:
    """How many leases of a pool one user may have at a time.

    Two simultaneous requests for the last one may both be refused, but never both granted.

    Attributes:
        user: the suffix of the holder's name of all the user's leases.
        most: the limit; None: unlimited.
    """

    user: str
    most: int | None

    def refuse_if_spent(self, source: Source, *, with_this: bool) -> None:
        """Raise TooManyLeases if one more lease would exceed the limit.

        Args:
            with_this: the lease has just been granted and is already counted.
        """
        if self.most is None:
            return
        connection = connections[source.using]
        rows = verbs.rows_of(connection, source.model).held().filter(holder__endswith=self.user)
        if retrying(connection, rows.count) + (not with_this) > self.most:
            limit = f"{self.most} leases of {source.model._meta.label}"
            raise TooManyLeases(
                f"the limit is {limit} per user (RESOURCEPOOL['REST_LIMITS']); release one first"
            )


def quota(model: Any, user: str) -> Quota:
    """Return the quota of the user with this suffix of holders' names; raises BadOption for a wrong setting."""
    return Quota(user, rest_limits(model._meta.label)["leases"])


def apply_limits(model: Any, wanted: LeaseRequest, data: Mapping[str, Any]) -> LeaseRequest:
    """Return the request with defaults lowered to the limits; a longer default cool-down of the pool is kept.

    Raises:
        BadOption: the body asks for more than a limit, or the setting is wrong.
    """
    limits = rest_limits(model._meta.label)
    ttl, priority = min(wanted.terms.ttl, limits["ttl"]), max(wanted.priority, limits["priority"])
    max_hold = min(
        (seconds for seconds in (wanted.terms.max_hold, limits["max_hold"]) if seconds is not None),
        default=None,
    )
    for name, is_beyond, words in (
        ("ttl", wanted.terms.ttl > limits["ttl"], "at most"),
        ("cooldown", wanted.terms.cooldown > limits["cooldown"], "at most"),
        ("max_hold", max_hold != wanted.terms.max_hold, "at most"),
        ("priority", wanted.priority < limits["priority"], "at least"),
    ):
        if is_beyond and data.get(name) is not None:
            raise BadOption(name, data[name], because=f"{words} {limits[name]:g} over REST (REST_LIMITS)")
    terms = dataclasses.replace(wanted.terms, ttl=ttl, max_hold=max_hold)
    return dataclasses.replace(wanted, terms=terms, priority=priority)

"""Limits for users of the REST API: their leases and options (REST_LIMITS), and how many requests wait (REST_WAITS).

Each waiting request keeps a thread of the web server, which renewals need, too.
"""

import contextlib
import dataclasses
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from django.db import connections
from rest_framework.request import Request

from resourcepool.conf import rest_limits, rest_waits
from resourcepool.db.retry import retrying
from resourcepool.db.threads.daemon import per_process
from resourcepool.exceptions import AcquireTimeout, BadOption
from resourcepool.leases import verbs
from resourcepool.leases.terms import Request as LeaseRequest
from resourcepool.rest.refusals import TooManyLeases, retry_delay
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


class TooManyWait(AcquireTimeout):
    """Nothing was free at once, and no more requests may wait in this process of the web server."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.retry_after = retry_delay()


class WaitSlots:
    """Counts the requests of this process that wait."""

    def __init__(self) -> None:
        self._lock, self._used = threading.Lock(), 0

    @contextlib.contextmanager
    def take(self, most: int) -> Iterator[bool]:
        """Use one of ``most`` slots for this block; yield whether one was free."""
        with self._lock:
            is_free = self._used < most
            self._used += is_free
        try:
            yield is_free
        finally:
            with self._lock:
                self._used -= is_free


@contextlib.contextmanager
def wait_slot(request: Request, wanted: LeaseRequest) -> Iterator[LeaseRequest]:
    """Yield the request, without its timeout if no more requests may wait here.

    Raises:
        TooManyWait: instead of the AcquireTimeout of a request without its timeout.
    """
    most = max_waits(request)
    with wait_slots.take(most if wanted.timeout else 0) as has_slot:
        try:
            yield wanted if has_slot else dataclasses.replace(wanted, timeout=0.0)
        except AcquireTimeout as error:
            if has_slot or not wanted.timeout:
                raise
            why = (
                f"the limit is {most} (RESOURCEPOOL['REST_WAITS'])"
                if has_threads(request)
                else "the process has one thread; start it with more (gunicorn --threads 8)"
            )
            raise TooManyWait(
                f"{error}. No more requests can wait in this process of the web server: {why}"
            ) from None


def max_waits(request: Request) -> int:
    """Return how many requests may wait here; none in a process with a single thread."""
    return rest_waits() if has_threads(request) else 0


def has_threads(request: Request) -> bool:
    """Whether the process has more than one thread, by the web server; true under ASGI."""
    return bool(request.META.get("wsgi.multithread", True))


wait_slots = per_process(WaitSlots)

"""What users of the REST API may have: leases and options (REST_LIMITS), requests that wait (REST_WAITS), names."""

import contextlib
import dataclasses
import hashlib
import json
import re
import secrets
import threading
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self

from django.db import connections
from rest_framework.request import Request

from resourcepool import options
from resourcepool.conf import rest_limits, rest_waits
from resourcepool.db.retry import retrying
from resourcepool.db.threads import per_process
from resourcepool.exceptions import AcquireTimeout, BadOption
from resourcepool.leases import verbs
from resourcepool.leases.terms import Request as LeaseRequest
from resourcepool.rest.refusals import TooManyLeases, caller, retry_delay, user_name
from resourcepool.waiting.source import Source

# Lengths in characters. Together they fit in the column.
MAX_HOLDER = 72
MAX_REQUEST_ID = 64
MAX_USER_KEY = 36

COMPARED = ("where", "ttl", "cooldown", "max_hold")  # parameters that must be equal when a request is repeated
HASH_LENGTH = 3  # characters for each of them; two values collide once in 262,144 times


class HolderName(NamedTuple):
    """The parts of a holder's name over REST.

    Attributes:
        holder: the ``holder`` of the body, or the user's name.
        request_id: the ``request_id`` of the body.
        hashes: of the parameters, see ``hashes_of``.
        user: the suffix, see ``user_suffix``.
    """

    holder: str
    request_id: str
    hashes: str
    user: str

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return the parts of a name that ``holder_name`` made; None if it has no request id."""
        match = re.fullmatch(
            rf"([^#]*) #(.+) ~([\w-]{{{HASH_LENGTH * len(COMPARED)}}})( of user .+)", text, re.ASCII
        )
        return None if match is None else cls(*match.groups())

    def is_same_request(self, other: "HolderName") -> bool:
        """Whether both are of the same request of the same user, with any parameters."""
        return (self.request_id, self.user) == (other.request_id, other.user)

    def differing(self, other: "HolderName") -> list[str]:
        """Return the names of the parameters whose values differ."""
        slices = (slice(HASH_LENGTH * number, HASH_LENGTH * (number + 1)) for number in range(len(COMPARED)))
        names = [
            name for name, part in zip(COMPARED, slices, strict=True) if self.hashes[part] != other.hashes[part]
        ]
        return [*(["holder"] if self.holder != other.holder else []), *names]


def holder_name(request: Request, data: Mapping[str, Any], *, is_one_of_many: bool) -> str:
    """Return the holder's name for a body: with its ``request_id``, or with a number if it has no ``holder``.

    Args:
        is_one_of_many: also add a number to the body's ``holder``: a program that holds one lock under that name
            and waits for another would look like a deadlock.
    """
    # Without the address: a repeated request may come from another one.
    default = user_name(request) if "request_id" in data else caller(request)
    holder = options.text("holder", data["holder"], most=MAX_HOLDER) if "holder" in data else default
    if "#" in holder:  # a user could pretend to be another user's request and share its lease
        raise BadOption("holder", holder, because="# is reserved for request ids: use request_id")
    if "request_id" in data:
        request_id = options.text("request_id", data["request_id"], most=MAX_REQUEST_ID)
        return f"{holder} #{request_id} ~{hashes_of(data)}{user_suffix(request)}"
    number = f" #{secrets.token_hex(4)}" if is_one_of_many or "holder" not in data else ""
    return f"{holder}{number}{user_suffix(request)}"


def user_suffix(request: Request) -> str:
    """Return the suffix of the holder's names of this user, and of no other user."""
    key = str(request.user.pk)
    return f" of user {key if len(key) <= MAX_USER_KEY else hashlib.sha256(key.encode()).hexdigest()[:MAX_USER_KEY]}"


def hashes_of(data: Mapping[str, Any]) -> str:
    """Return a short hash of each of the ``COMPARED`` values, joined."""
    return "".join(_hash(data.get(name)) for name in COMPARED)


def _hash(value: Any) -> str:
    text = re.sub(r"(\d)\.0(?=[,\]}]|$)", r"\1", json.dumps(value, sort_keys=True))  # 60.0 is 60
    return urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()[:HASH_LENGTH]


def refuse_if_spent(source: Source, user: str, *, with_this: bool) -> None:
    """Raise TooManyLeases if one more lease of this pool would exceed the limit per user.

    Two simultaneous requests for the last one may both be refused, but never both granted.

    Args:
        user: the suffix of the holder's name of all the user's leases.
        with_this: the lease has just been granted and is already counted.
    """
    label = source.model._meta.label
    if (most := rest_limits(label)["leases"]) is None:
        return
    connection = connections[source.using]
    rows = verbs.rows_of(connection, source.model).held().filter(holder__endswith=user)
    if retrying(connection, rows.count) + (not with_this) > most:
        limit = f"{most} leases of {label} per user (RESOURCEPOOL['REST_LIMITS'])"
        raise TooManyLeases(f"the limit is {limit}; release one first")


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
    most = rest_waits() if has_threads(request) else 0
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


def has_threads(request: Request) -> bool:
    """Whether the process has more than one thread, by the web server; true under ASGI."""
    return bool(request.META.get("wsgi.multithread", True))


wait_slots = per_process(WaitSlots)

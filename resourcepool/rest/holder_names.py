"""Holders' names over REST: they contain the user, the request's id and a hash of its parameters."""

import hashlib
import json
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from rest_framework.request import Request

from resourcepool import options
from resourcepool.exceptions import BadOption
from resourcepool.rest.refusals import caller, user_name

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

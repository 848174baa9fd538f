"""Holders' names over REST: who has it, of which user, for which request, sent with which parameters."""

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
from resourcepool.rest.access import caller, user_name

MOST_NAME = (
    72  # characters of a name that a program chose: with a request's id and a user's key it fits in its column
)
MOST_ID = 64  # characters of a request's id
MOST_KEY = 36  # characters of a user's primary key
COMPARED = ("where", "ttl", "cooldown", "max_hold")  # parameters that say what is leased; the others say how
LETTERS = 3  # for each of them: two values that differ have the same ones once in 262,144 times


class HolderName(NamedTuple):
    """What a holder's name over REST says.

    Attributes:
        holder: as the program called itself, or the user's name.
        request_id: of the request.
        marks: of the parameters it was sent with, see ``marks_of``.
        user: the end of the name.
    """

    holder: str
    request_id: str
    marks: str
    user: str

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return what ``holder_name`` has put into ``text``; None: no request's id."""
        found = re.fullmatch(
            rf"([^#]*) #(.+) ~([\w-]{{{LETTERS * len(COMPARED)}}})( of user .+)", text, re.ASCII
        )
        return None if found is None else cls(*found.groups())

    def is_same_request(self, other: "HolderName") -> bool:
        """Whether both are of one user's request, whatever parameters it was sent with."""
        return (self.request_id, self.user) == (other.request_id, other.user)

    def differing(self, other: "HolderName") -> list[str]:
        """Return the names of the parameters with other values."""
        places = (slice(LETTERS * number, LETTERS * (number + 1)) for number in range(len(COMPARED)))
        found = [
            name
            for name, place in zip(COMPARED, places, strict=True)
            if self.marks[place] != other.marks[place]
        ]
        return [*(["holder"] if self.holder != other.holder else []), *found]


def holder_name(request: Request, asked: Mapping[str, Any], *, is_one_of_many: bool) -> str:
    """Return the holder's name of a body, with its ``request_id``, or a number where no name is given.

    Args:
        is_one_of_many: a name that was chosen gets a number, too: whoever holds one lock under it and waits for another
            would look like one that waits for itself.
    """
    # Without the address: sent again, a request may come by another one.
    default = user_name(request) if "request_id" in asked else caller(request)
    holder = options.text("holder", asked["holder"], most=MOST_NAME) if "holder" in asked else default
    if "#" in holder:  # or somebody could name himself as the request of somebody else, and share its lease
        raise BadOption("holder", holder, because="# begins the id of a request: send that as request_id")
    if "request_id" in asked:
        request_id = options.text("request_id", asked["request_id"], most=MOST_ID)
        return f"{holder} #{request_id} ~{marks_of(asked)}{user_suffix(request)}"
    number = f" #{secrets.token_hex(4)}" if is_one_of_many or "holder" not in asked else ""
    return f"{holder}{number}{user_suffix(request)}"


def user_suffix(request: Request) -> str:
    """Return the end of the names of all that this user holds over REST, and nobody else."""
    key = str(request.user.pk)
    return f" of user {key if len(key) <= MOST_KEY else hashlib.sha256(key.encode()).hexdigest()[:MOST_KEY]}"


def marks_of(asked: Mapping[str, Any]) -> str:
    """Return text that tells the values of ``COMPARED`` from others, a few letters for each."""
    return "".join(_mark(asked.get(name)) for name in COMPARED)


def _mark(value: Any) -> str:
    text = re.sub(r"(\d)\.0(?=[,\]}]|$)", r"\1", json.dumps(value, sort_keys=True))  # 60.0 is 60
    return urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()[:LETTERS]

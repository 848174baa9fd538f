"""Validates payloads and the start of a subscription."""

import datetime
from collections.abc import Iterable, Mapping, Sized
from itertools import islice
from typing import Literal, cast

from resourcepool import options
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.translation import gettext_noop as _

MAX_MESSAGES_AT_ONCE = 1_000  # messages
MAX_JSON_AT_ONCE = 4 * 1024 * 1024  # bytes
MAX_NUMBER = 2**62

From = Literal["now", "start"] | int | datetime.datetime


def payloads(value: object, most: int) -> list[str]:
    """Return each as JSON, at most ``most`` (1,000), 4 MiB in total; raises BadOption, which names the wrong one."""
    most = min(most, MAX_MESSAGES_AT_ONCE)
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | bytearray | Mapping):
        raise BadOption("payloads", value, Sentence(_("a list of payloads")))
    listed = list(islice(value, most + 1))
    if len(listed) > most:
        count = f"{len(value)} messages" if isinstance(value, Sized) else f"more than {most} messages"
        raise BadOption("payloads", count, Sentence(_("at most %(count)s messages at once"), count=most))
    texts = [options.json_text(f"payloads[{index}]", item) for index, item in enumerate(listed)]
    size = sum(len(text.encode()) for text in texts)
    if size > MAX_JSON_AT_ONCE:
        allowed = Sentence(_("at most %(count)s bytes of JSON"), count=MAX_JSON_AT_ONCE)
        raise BadOption("payloads", f"{size} bytes", allowed)
    return texts


def start(value: object) -> From:
    """Return ``value`` if it is "now", "start", a number or a datetime; raises BadOption."""
    if isinstance(value, str) and value in ("now", "start"):
        return cast(From, value)
    if isinstance(value, datetime.datetime):
        return options.moment("from_", value)
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_NUMBER:
        return value
    allowed = Sentence(_('"now", "start", the number of a message (1 or more), or a datetime'))
    raise BadOption("from_", value, allowed)

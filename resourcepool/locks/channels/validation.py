"""Validates payloads and the start of a subscription."""

import datetime
import json
from collections.abc import Iterable, Mapping, Sized
from itertools import islice
from typing import Any, Literal, cast

from django.conf import settings
from django.utils import timezone

from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.translation import gettext_noop as _

MAX_JSON = 65_536  # bytes
MAX_MESSAGES_AT_ONCE = 1_000  # messages
MAX_JSON_AT_ONCE = 4 * 1024 * 1024  # bytes
EARLIEST, LATEST = 1900, 9998  # years that every database supports in every time zone
MAX_NUMBER = 2**62

From = Literal["now", "start"] | int | datetime.datetime


def payload(value: Any, option: str = "payload") -> str:
    """Return ``value`` as JSON of at most 64 KiB; raises BadOption."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        allowed = Sentence(_("a JSON value (%(error)s)"), error=str(error))
        raise BadOption(option, value, allowed) from None
    if size > MAX_JSON:
        allowed = Sentence(_("at most %(count)s bytes of JSON"), count=MAX_JSON)
        raise BadOption(option, f"{size} bytes", allowed)
    return text


def payloads(value: object, most: int) -> list[str]:
    """Return each as JSON, at most ``most`` (1,000), 4 MiB in total; raises BadOption, which names the wrong one."""
    most = min(most, MAX_MESSAGES_AT_ONCE)
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | bytearray | Mapping):
        raise BadOption("payloads", value, Sentence(_("a list of payloads")))
    listed = list(islice(value, most + 1))
    if len(listed) > most:
        count = f"{len(value)} messages" if isinstance(value, Sized) else f"more than {most} messages"
        raise BadOption("payloads", count, Sentence(_("at most %(count)s messages at once"), count=most))
    texts = [payload(item, f"payloads[{index}]") for index, item in enumerate(listed)]
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
        return _moment(value)
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_NUMBER:
        return value
    allowed = Sentence(_('"now", "start", the number of a message (1 or more), or a datetime'))
    raise BadOption("from_", value, allowed)


def _moment(value: datetime.datetime) -> datetime.datetime:
    if settings.USE_TZ is timezone.is_naive(value):
        which = "with" if settings.USE_TZ else "without"
        raise BadOption("from_", value, f"a datetime {which} a time zone, such as django.utils.timezone.now()")
    if not EARLIEST <= value.year <= LATEST:
        allowed = Sentence(
            _("a datetime between the years %(first)s and %(last)s"), first=str(EARLIEST), last=str(LATEST)
        )
        raise BadOption("from_", value, allowed)
    return value

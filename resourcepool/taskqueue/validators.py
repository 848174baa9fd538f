"""Validation of arguments: names, JSON objects and times that every database stores unchanged."""

import datetime
import json
from collections.abc import Mapping

from django.conf import settings
from django.utils import timezone

from resourcepool import options
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.translation import gettext_noop as _

MAX_NAME = 200  # characters
MAX_JSON = 65_536  # bytes
EARLIEST, LATEST = 1900, 9998  # years that every database stores, in every time zone


def name(option: str, value: object, *, most: int = MAX_NAME) -> str:
    """Return ``value`` if it is a line of 1 to ``most`` characters without outer spaces; raises BadOption."""
    text = options.text(option, value, most=most)
    if text != text.strip():  # MariaDB ignores trailing spaces in comparisons
        raise BadOption(option, value, Sentence(_("one line of text without leading or trailing spaces")))
    return text


def json_object(option: str, value: object) -> str:
    """Return a mapping as JSON of at most 64 KiB; raises BadOption."""
    if not isinstance(value, Mapping):
        raise BadOption(option, value, Sentence(_("a JSON object")))
    try:
        text = json.dumps(dict(value), allow_nan=False, ensure_ascii=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise BadOption(option, value, Sentence(_("a JSON object (%(error)s)"), error=str(error))) from None
    if size > MAX_JSON:
        raise BadOption(option, f"{size} bytes", Sentence(_("at most %(count)s bytes of JSON"), count=MAX_JSON))
    return text


def moment(option: str, value: object) -> datetime.datetime:
    """Return ``value`` if it is a datetime, aware if USE_TZ is on, else naive; raises BadOption."""
    if not isinstance(value, datetime.datetime):
        raise BadOption(option, value, "a datetime")
    if settings.USE_TZ is timezone.is_naive(value):
        which = "with" if settings.USE_TZ else "without"
        raise BadOption(option, value, f"a datetime {which} a time zone, such as django.utils.timezone.now()")
    if not EARLIEST <= value.year <= LATEST:
        raise BadOption(
            option,
            value,
            Sentence(
                _("a time between the years %(first)s and %(last)s"), first=str(EARLIEST), last=str(LATEST)
            ),
        )
    return value

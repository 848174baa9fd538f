"""Validates callers' values; each error names the option, the value and what is allowed."""

import inspect
import json
import math
import re
import unicodedata
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils import timezone

from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.translation import gettext_lazy, gettext_noop as _

DAY = 86_400.0
# Units of durations, with the texts for one and for several.
UNITS = (
    (DAY, _("1 day (%(seconds)s s)"), _("%(number)s days (%(seconds)s s)")),
    (3_600.0, _("1 hour (%(seconds)s s)"), _("%(number)s hours (%(seconds)s s)")),
)

SUFFIXES = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}
_DURATION = re.compile(r"([0-9]{1,12}(?:\.[0-9]+)?)\s*([a-z]*)")

MAX_NAME = 200  # characters
MAX_JSON = 65_536  # bytes
MAX_LABELS, MAX_LABEL = 20, 50  # labels such as {"zone": "eu"}; characters
EARLIEST, LATEST = 1900, 9998  # years that every database stores, in every time zone

Choice = TypeVar("Choice", bound=str)
Seconds = float | timedelta  # a duration as callers give it


def parse_duration(text: str) -> float | None:
    """Return the seconds of "90", "90s", "15m", "2h" or "7d"; None: it is no duration."""
    match = _DURATION.fullmatch(text.strip().lower())
    if not match or (match[2] or "s") not in SUFFIXES:
        return None
    return float(match[1]) * SUFFIXES[match[2] or "s"]


def short_duration(seconds: float) -> str:
    """Return seconds as ``parse_duration`` reads them: "7d", "90m", "2.5s"."""
    sizes = {suffix: size for suffix, size in SUFFIXES.items() if suffix != "min" and seconds % size == 0}
    suffix, size = max(sizes.items(), key=lambda one: one[1], default=("s", 1)) if seconds else ("s", 1)
    return f"{seconds / size:.15g}{suffix}"


def duration_text(seconds: float) -> Sentence:
    """Return a duration as text: "12 s", "1 day (86,400 s)"."""
    for size, singular, plural in UNITS:
        if seconds and seconds % size == 0:
            text = singular if seconds == size else plural
            return Sentence(text, number=seconds / size, seconds=float(seconds))
    return Sentence(_("%(seconds)s s"), seconds=float(seconds))


def seconds(name: str, value: object, *, least: float = 0.0, most: float = DAY) -> float:
    """Return ``value`` (seconds or a timedelta) as seconds.

    Raises:
        BadOption: it is neither, or not between ``least`` and ``most`` seconds.
    """
    number = math.nan
    if isinstance(value, timedelta):
        number = value.total_seconds()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value) if abs(value) <= most else math.inf  # float() raises for huge integers
    if math.isfinite(number) and least <= number <= most:
        return number
    allowed = _("seconds or a timedelta, from %(least)s to %(most)s")
    raise BadOption(name, value, Sentence(allowed, least=duration_text(least), most=duration_text(most)))


def rate(name: str, value: object, *, least: float, most: float) -> float:
    """Return ``value`` (a number per second) if it is from ``least`` to ``most``; raises BadOption otherwise."""
    if isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most:
        return float(value)
    raise BadOption(
        name, value, Sentence(_("a rate per second, from %(least)s to %(most)s"), least=least, most=most)
    )


def whole(name: str, value: object, *, least: int, most: int) -> int:
    """Return ``value`` if it is a whole number from ``least`` to ``most``; raises BadOption otherwise."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BadOption(
            name,
            value,
            Sentence(
                _("a whole number from %(count_least)s to %(count_most)s"), count_least=least, count_most=most
            ),
        )
    return value


def flag(name: str, value: object) -> bool:
    """Return ``value`` if it is True or False; raises BadOption otherwise."""
    if not isinstance(value, bool):
        raise BadOption(name, value, Sentence(_("True or False")))
    return value


def plain_function(name: str, value: object, allowed: str) -> None:
    """Raise BadOption unless ``value`` is callable and not a coroutine function, whose result would be truthy."""
    if not callable(value) or inspect.iscoroutinefunction(value):
        raise BadOption(name, value, allowed)


def one_of(name: str, value: object, allowed: Collection[Choice]) -> Choice:
    """Return ``value`` if it is among ``allowed``; raises BadOption otherwise."""
    for choice in allowed:
        if choice == value:
            return choice
    raise BadOption(name, value, Sentence(_("one of %(names)s"), names=", ".join(sorted(allowed))))


def name(option: str, value: object, *, most: int = MAX_NAME) -> str:
    """Return ``value`` if it is valid ``text`` without a space at either end; raises BadOption otherwise.

    Databases disagree on whether "a" and "a " are the same key.
    """
    line = text(option, value, most=most)
    if line != line.strip():
        allowed = Sentence(_("one line of 1 to %(count)s characters without a space at either end"), count=most)
        raise BadOption(option, value, allowed)
    return line


def _allowed(value: object, most: int) -> Sentence:
    """Return what a text must be; it names the first forbidden character, because most screens do not show it."""
    hidden = next((char for char in value if not char.isprintable()), None) if isinstance(value, str) else None
    if hidden is None:
        return Sentence(_("one line of text, 1 to %(count)s printable characters"), count=most)
    character = f"U+{ord(hidden):04X} {unicodedata.name(hidden, '')}".strip()
    allowed = _("one line of text, 1 to %(count)s printable characters; %(character)s is not printable")
    return Sentence(allowed, count=most, character=character)


def text(name: str, value: object, *, most: int) -> str:
    """Return ``value`` if it is one line of 1 to ``most`` printable characters; raises BadOption otherwise."""
    if not isinstance(value, str) or not 0 < len(value) <= most or not value.isprintable():
        raise BadOption(name, value, _allowed(value, most))
    if isinstance(value, Sentence):  # it keeps its code, to be localized when it is read
        return value
    return str.__str__(value)  # ``str()`` of another subclass, such as an enum member, may differ


def json_text(option: str, value: object, allowed: str = _("a JSON value (%(error)s)")) -> str:
    """Return ``value`` as JSON of at most 64 KiB; raises BadOption, which says what is ``allowed``."""
    try:
        encoded = json.dumps(value, allow_nan=False, ensure_ascii=False)
        size = len(encoded.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise BadOption(option, value, Sentence(allowed, error=str(error))) from None
    if size > MAX_JSON:
        raise BadOption(option, f"{size} bytes", Sentence(_("at most %(count)s bytes of JSON"), count=MAX_JSON))
    return encoded


def json_object(option: str, value: object) -> str:
    """Return a mapping as JSON of at most 64 KiB; raises BadOption."""
    if not isinstance(value, Mapping):
        raise BadOption(option, value, Sentence(_("a JSON object")))
    return json_text(option, dict(value), _("a JSON object (%(error)s)"))


def moment(option: str, value: object) -> datetime:
    """Return ``value`` if it is a datetime, aware if USE_TZ is on, else naive; raises BadOption."""
    if not isinstance(value, datetime):
        raise BadOption(option, value, "a datetime")
    if settings.USE_TZ is timezone.is_naive(value):
        which = "with" if settings.USE_TZ else "without"
        raise BadOption(option, value, f"a datetime {which} a time zone, such as django.utils.timezone.now()")
    if not EARLIEST <= value.year <= LATEST:
        years = {"first": str(EARLIEST), "last": str(LATEST)}
        raise BadOption(option, value, Sentence(_("a time between the years %(first)s and %(last)s"), **years))
    return value


def check_labels(value: Any) -> None:
    """Validate labels, for model fields; raises ValidationError."""
    if not isinstance(value, dict) or len(value) > MAX_LABELS:
        raise ValidationError(
            gettext_lazy('Labels must be a JSON object with at most 20 strings, e.g. {"zone": "eu"}.')
        )
    for part in (*value.keys(), *value.values()):
        if not isinstance(part, str) or not 0 < len(part) <= MAX_LABEL or not part.isprintable():
            raise ValidationError(
                gettext_lazy("Each label and its value must have 1 to 50 printable characters.")
            )


def labels_of(value: Mapping[str, str] | None) -> dict[str, str]:
    """Return validated labels; raises BadOption."""
    try:
        labels = dict(value or {})
        check_labels(labels)
    except (TypeError, ValueError):
        raise BadOption("labels", value, Sentence(_('a dict of strings, e.g. {"zone": "eu"}'))) from None
    except ValidationError as error:
        raise BadOption("labels", value, because=" ".join(error.messages)) from None
    return labels

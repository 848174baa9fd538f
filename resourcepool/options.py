"""Checks values that callers hand in; every refusal names the option, the value and what is allowed."""

import math
from collections.abc import Collection
from datetime import timedelta
from typing import TypeVar

from django.utils.translation import gettext_noop as _

from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption

DAY = 86_400.0

Choice = TypeVar("Choice", bound=str)


def seconds(name: str, value: object, *, least: float = 0.0, most: float = DAY) -> float:
    """Return ``value`` (seconds or a timedelta) as seconds.

    Raises:
        BadOption: when it is no such thing, or not between ``least`` and ``most`` seconds.
    """
    allowed = Sentence(_("seconds or a timedelta, from %(least)s to %(most)s seconds"), least=least, most=most)
    if isinstance(value, timedelta):
        number = value.total_seconds()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value) if abs(value) <= most else math.inf  # float() itself refuses what is too large
    else:
        raise BadOption(name, value, allowed)
    if not math.isfinite(number) or not least <= number <= most:
        raise BadOption(name, value, allowed)
    return number


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


def one_of(name: str, value: object, allowed: Collection[Choice]) -> Choice:
    """Return ``value`` if it is among ``allowed``; raises BadOption otherwise."""
    for choice in allowed:
        if choice == value:
            return choice
    raise BadOption(name, value, Sentence(_("one of %(names)s"), names=", ".join(sorted(allowed))))


def text(name: str, value: object, *, most: int) -> str:
    """Return ``value`` if it is one line of 1 to ``most`` printable characters; raises BadOption otherwise."""
    if not isinstance(value, str) or not 0 < len(value) <= most or not value.isprintable():
        raise BadOption(
            name, value, Sentence(_("one line of text, 1 to %(count)s printable characters"), count=most)
        )
    return value

"""Date and time look-ups in the address of a list, such as ``?at__gte=2026-11-27T03:00``."""

import datetime
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db.models import DateTimeField
from django.utils.dateparse import parse_datetime

from resourcepool.db.dialect import aware

COMPARISONS = ("gt", "gte", "lt", "lte")
YEARS = range(1_001, 9_999)  # that every database supports, in every time zone


def is_datetime_lookup(model: Any, lookup: str) -> bool:
    """Return whether ``lookup`` compares a ``DateTimeField`` of ``model``, e.g. ``at__gte``."""
    name, _, comparison = lookup.partition("__")
    try:
        return comparison in COMPARISONS and isinstance(model._meta.get_field(name), DateTimeField)
    except FieldDoesNotExist:
        return False


def parse_param(text: str) -> datetime.datetime | None:
    """Return the date and time in ``text``, in the current time zone unless it names one; None: invalid."""
    try:
        # An unquoted plus sign of a time zone arrives as a space.
        parsed = parse_datetime(text) or parse_datetime(text.replace(" ", "+"))
    except ValueError:
        return None
    return aware(parsed) if parsed is not None and parsed.year in YEARS else None

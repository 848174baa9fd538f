"""Moments in the address of a list, such as ``?at__gte=2026-11-27T03:00``."""

import datetime
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db.models import DateTimeField
from django.utils.dateparse import parse_datetime

from resourcepool.dialect import aware

COMPARED = ("gt", "gte", "lt", "lte")
YEARS = range(1_001, 9_999)  # which every database knows, in every zone


def compares_moments(model: Any, lookup: str) -> bool:
    """Tell whether ``lookup`` asks for moments before or after one."""
    name, _, how = lookup.partition("__")
    try:
        return how in COMPARED and isinstance(model._meta.get_field(name), DateTimeField)
    except FieldDoesNotExist:
        return False


def moment_of(text: str) -> datetime.datetime | None:
    """Return the moment that a text names, in the zone of the page unless it names one; None: it names none."""
    try:
        # The plus of a zone is a space in an address, unless it is quoted.
        found = parse_datetime(text) or parse_datetime(text.replace(" ", "+"))
    except ValueError:
        return None
    return aware(found) if found is not None and found.year in YEARS else None

"""Shared by all readings: how rows and durations are read, and how a reading becomes JSON."""

import datetime
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

from django.db import DatabaseError, connections, router
from django.db.models import FloatField, Model
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from resourcepool.database.retry import retrying
from resourcepool.dialect import MicrosUntil, from_columns
from resourcepool.exceptions import NotMigrated, ResourcePoolError
from resourcepool.history.models import Event

DIGITS = 6  # of seconds: microseconds


class _SecondsUntil(FloatField):  # type: ignore[type-arg]
    def from_db_value(self, micros: float | None, *_: Any) -> float | None:
        return None if micros is None else micros / 1_000_000


class _SecondsSince(_SecondsUntil):
    def from_db_value(self, micros: float | None, *_: Any) -> float | None:
        return ago(micros)


class Until(MicrosUntil):
    """Seconds from the database's now until a moment; negative once it has passed, None without a moment."""

    output_field = _SecondsUntil()  # type: ignore[assignment]


class Since(MicrosUntil):
    """Seconds since a moment, by the database's clock; 0 before it, None without a moment.

    The database still compares the microseconds until it: the longest time is ``Since(Min(moment))``.
    """

    output_field = _SecondsSince()  # type: ignore[assignment]


def fetch_all(rows: Any) -> list[Any]:
    """Return what a queryset has, with ``retrying``; raises DatabaseUnavailable or NotMigrated."""
    return retrying(connections[rows.db], lambda: list(rows.all()))


def with_zone(at: datetime.datetime) -> datetime.datetime:
    """Return a moment that was read from a column, with a time zone, which Django gives it only if USE_TZ is on."""
    return at if timezone.is_aware(at) else from_columns(at, connections[router.db_for_write(Event)])


def as_data(reading: Any) -> Any:
    """Return a reading as JSON knows it.

    A dataclass becomes an object with its fields and the properties named in ``ALSO``. Moments are in ISO form,
    durations in seconds. A row becomes ``pool``, ``id`` and ``resource``; as a field, it is replaced by these.
    """
    if isinstance(reading, Model):
        return {"pool": reading._meta.label, "id": as_data(reading.pk), "resource": str(reading)}
    if is_dataclass(reading):
        return _object(reading, [*(field.name for field in fields(reading)), *getattr(reading, "ALSO", ())])
    if isinstance(reading, Mapping):
        return {str(as_data(key)): as_data(value) for key, value in reading.items()}
    if isinstance(reading, Enum):
        return reading.value
    if isinstance(reading, float):
        return round(reading, DIGITS)
    if reading is None or isinstance(reading, str | int):
        return reading
    if isinstance(reading, Iterable):
        return [as_data(one) for one in reading]
    if isinstance(reading, datetime.datetime):
        return with_zone(reading).isoformat()
    return str(reading)


def _object(reading: Any, names: Iterable[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in names:
        value = getattr(reading, name)
        found |= as_data(value) if isinstance(value, Model) else {name: as_data(value)}
    return found


def fetch_union(models: Iterable[Any], rows_of: Callable[[Any], Any]) -> list[Any] | None:
    """Return the rows of all models by one UNION.

    Returns:
        None if that fails: a table is missing, or (MySQL) texts have different collations. Then read each separately.
    """
    first, *rest = [rows_of(model) for model in models]
    try:
        return fetch_all(first.union(*rest, all=True) if rest else first)
    except (ResourcePoolError, DatabaseError):
        return None


Result = TypeVar("Result")


def read_each(models: Iterable[Any], read: Callable[[Any], Result]) -> dict[Any, Result]:
    """Return {model: result of ``read``}, without models whose table does not exist yet.

    Raises:
        NotMigrated: none has a table.
    """
    found, missing = {}, None
    for model in models:
        try:
            found[model] = read(model)
        except NotMigrated as error:
            missing = error
    if missing is not None and not found:
        raise missing
    return found


UNITS = ((gettext_noop("%d d"), 86_400), (gettext_noop("%d h"), 3_600), (gettext_noop("%d min"), 60))


def duration(seconds: float) -> str:
    """Return a duration for people, rounded: "45 s", "12 min", "3 h", "5 d"."""
    for unit, size in UNITS:
        if round(seconds) >= 2 * size:
            return _(unit) % round(seconds / size)
    return _("%d s") % seconds


def exact_duration(seconds: float) -> str:
    """Return a duration in the largest unit that needs no rounding: "7 d", "90 min", "2.5 s"."""
    for unit, size in UNITS:
        if seconds and seconds % size == 0:
            return _(unit) % (seconds // size)
    return _("%s s") % f"{seconds:,.15g}"


def ago(micros: float | None) -> float | None:
    """Return how many seconds ago a time was, given the microseconds until it (``MicrosUntil``); None: never."""
    return None if micros is None else max(0.0, -float(micros) / 1_000_000)

"""Shared by all status modules: queries with durations, and results as JSON and as text."""

import datetime
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

from django.db import connections
from django.db.models import FloatField, Model

from resourcepool.db.dialect import MicrosUntil
from resourcepool.db.retry import retrying
from resourcepool.exceptions import NotMigrated
from resourcepool.status.times import with_zone

DECIMALS = 6  # of seconds


class _SecondsUntil(FloatField):  # type: ignore[type-arg]
    def from_db_value(self, micros: float | None, *_: Any) -> float | None:
        return None if micros is None else micros / 1_000_000


class _SecondsSince(_SecondsUntil):
    def from_db_value(self, micros: float | None, *_: Any) -> float | None:
        return seconds_since(micros)


class Until(MicrosUntil):
    """Seconds until a time, by the database's clock; negative once it has passed, None for NULL."""

    output_field = _SecondsUntil()  # type: ignore[assignment]


class Since(MicrosUntil):
    """Seconds since a time, by the database's clock; 0 before it, None for NULL.

    In the database the value is the microseconds until that time, so the longest is ``Since(Min(column))``.
    """

    output_field = _SecondsSince()  # type: ignore[assignment]


def fetch_all(rows: Any) -> list[Any]:
    """Return the rows of a queryset, with ``retrying``; raises DatabaseUnavailable or NotMigrated."""
    return retrying(connections[rows.db], lambda: list(rows.all()))


def as_data(value: Any) -> Any:
    """Return a status as data for JSON.

    A dataclass becomes an object of its fields and of the properties named in ``ALSO``. Datetimes are in ISO format,
    durations in seconds. A model becomes its label; a row becomes ``pool``, ``id`` and ``resource``, which also replace
    the field with the row.
    """
    if isinstance(value, type):
        return value._meta.label  # type: ignore[attr-defined]
    if isinstance(value, Model):
        return {"pool": value._meta.label, "id": as_data(value.pk), "resource": str(value)}
    if is_dataclass(value):
        return _object(value, [*(field.name for field in fields(value)), *getattr(value, "ALSO", ())])
    if isinstance(value, Mapping):
        return {str(as_data(key)): as_data(value) for key, value in value.items()}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return round(value, DECIMALS)
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Iterable):
        return [as_data(item) for item in value]
    if isinstance(value, datetime.datetime):
        return with_zone(value).isoformat()
    return str(value)


def _object(value: Any, names: Iterable[str]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for name in names:
        field = getattr(value, name)
        data |= as_data(field) if isinstance(field, Model) else {name: as_data(field)}
    return data


Result = TypeVar("Result")


def read_each(models: Iterable[Any], read: Callable[[Any], Result]) -> dict[Any, Result]:
    """Return {model: result of ``read``} for the models that have a table.

    Raises:
        NotMigrated: no model has a table.
    """
    results, missing = {}, None
    for model in models:
        try:
            results[model] = read(model)
        except NotMigrated as error:
            missing = error
    if missing is not None and not results:
        raise missing
    return results


def seconds_since(micros: float | None) -> float | None:
    """Return the seconds since a time, given the microseconds until it (``MicrosUntil``); None: never."""
    return None if micros is None else max(0.0, -float(micros) / 1_000_000)

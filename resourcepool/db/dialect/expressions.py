"""The database's clock in querysets and Python."""

import datetime
from typing import Any

from django.conf import settings
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import expressions
from django.utils import timezone

from resourcepool.db.dialect.base import micros
from resourcepool.db.dialect.connections import of


class DbNow(expressions.Func):
    """The database's UTC clock at the start of the statement, in a form that can use an index.

    Django's own ``Now()`` is the session's local time on MySQL.
    """

    output_field = models.DateTimeField()

    def as_sql(self, compiler: Any, connection: BaseDatabaseWrapper, *_: Any, **__: Any) -> Any:
        return of(connection).indexed_now, ()


class DbLater(expressions.Func):
    """``DbNow`` plus ``seconds``."""

    output_field = models.DateTimeField()

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def as_sql(self, compiler: Any, connection: BaseDatabaseWrapper, *_: Any, **__: Any) -> Any:
        return of(connection).indexed_later, (micros(self.seconds),)


class DbMicros(expressions.Func):
    """The database's clock as whole microseconds since 1970: the first fence of a new row.

    So a row that is deleted and recreated never repeats fences.
    """

    output_field = models.BigIntegerField()

    def as_sql(self, compiler: Any, connection: BaseDatabaseWrapper, *_: Any, **__: Any) -> Any:
        return of(connection).micros_now, ()


class MicrosUntil(expressions.Func):
    """Whole microseconds from the database's now until a datetime column; negative once it has passed."""

    output_field = models.BigIntegerField()

    def as_sql(self, compiler: Any, connection: BaseDatabaseWrapper, *_: Any, **__: Any) -> Any:
        (moment,) = self.get_source_expressions()
        sql, params = compiler.compile(moment)
        return of(connection).micros_until.format(moment=sql), tuple(params)


class NullInOrder(expressions.Func):
    """In ``order_by``: a column of an index that is NULL in all selected rows, so that rows are read by the index.

    PostgreSQL needs every column of the index in ORDER BY; MariaDB needs this one left out.
    """

    def as_sql(self, compiler: Any, connection: BaseDatabaseWrapper, *_: Any, **__: Any) -> Any:
        (column,) = self.get_source_expressions()
        sql, params = compiler.compile(column)
        return of(connection).null_in_order.format(column=sql), tuple(params)


def read_clock(connection: BaseDatabaseWrapper) -> datetime.datetime:
    """Return the database's now as Django reads datetimes from it: with a time zone if USE_TZ is on.

    In UTC; but if ``TIME_ZONE`` is set for a database that stores datetimes as text, Django reads all of them in that
    zone (E013), so this one is read in the same way, to be comparable.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {of(connection).now}", ())
        (value,) = cursor.fetchone()
    moment: datetime.datetime = datetime.datetime.fromisoformat(value) if isinstance(value, str) else value
    plain = moment.astimezone(datetime.UTC).replace(tzinfo=None) if moment.tzinfo else moment
    if not settings.USE_TZ:
        return plain
    return plain.replace(tzinfo=datetime.UTC if moment.tzinfo else connection.timezone)


def in_columns(moment: datetime.datetime, connection: BaseDatabaseWrapper) -> datetime.datetime:
    """Return the project's datetime as stored in a column: without USE_TZ it is in TIME_ZONE, but text is UTC."""
    if settings.USE_TZ:
        return moment
    if connection.features.supports_timezones:  # a naive one would be ambiguous when clocks go back
        return aware(moment)
    return aware(moment).astimezone(datetime.UTC).replace(tzinfo=None)


def from_columns(moment: datetime.datetime, connection: BaseDatabaseWrapper) -> datetime.datetime:
    """Return a datetime read from a column, with a time zone."""
    if timezone.is_naive(moment):
        is_project_time = connection.features.supports_timezones
        moment = moment.replace(tzinfo=timezone.get_default_timezone() if is_project_time else datetime.UTC)
    return moment.astimezone(datetime.UTC)


def aware(moment: datetime.datetime) -> datetime.datetime:
    """Return the project's datetime with a time zone."""
    return timezone.make_aware(moment) if timezone.is_naive(moment) else moment


def for_project(moment: datetime.datetime) -> datetime.datetime:
    """Return an aware datetime in the project's form: without USE_TZ naive, in TIME_ZONE."""
    return moment if settings.USE_TZ else timezone.make_naive(moment)

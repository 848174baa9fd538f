"""The database's clock, in querysets and by itself, and model fields that mean the same on every database."""

import datetime
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import expressions
from django.utils import timezone

from resourcepool.dialect.base import micros
from resourcepool.dialect.supported import of
from resourcepool.text import CharField

if TYPE_CHECKING:
    BigIntegerField = models.BigIntegerField[Any, Any]
else:  # Django's fields take no type parameters when they run
    BigIntegerField = models.BigIntegerField


class DbNow(expressions.Func):
    """The database's UTC clock in a queryset, as the statement began: an index on a moment can be compared with it.

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
    """The database's clock as whole microseconds since 1970, in a queryset: where a fence begins.

    A row that is deleted and made again would otherwise repeat the fences of its first life.
    """

    output_field = models.BigIntegerField()

    def as_sql(self, compiler: Any, connection: BaseDatabaseWrapper, *_: Any, **__: Any) -> Any:
        return of(connection).micros_now, ()


class MicrosUntil(expressions.Func):
    """Whole microseconds from the database's now until a moment column; negative once it has passed."""

    output_field = models.BigIntegerField()

    def as_sql(self, compiler: Any, connection: BaseDatabaseWrapper, *_: Any, **__: Any) -> Any:
        (moment,) = self.get_source_expressions()
        sql, params = compiler.compile(moment)
        return of(connection).micros_until.format(moment=sql), tuple(params)


class NullInOrder(expressions.Func):
    """In ``order_by``, a column of an index that is NULL in all rows that are found: they are read along the index.

    PostgreSQL does that only if each of the index's columns is named, and MariaDB only if this one is not.
    """

    def as_sql(self, compiler: Any, connection: BaseDatabaseWrapper, *_: Any, **__: Any) -> Any:
        (column,) = self.get_source_expressions()
        sql, params = compiler.compile(column)
        return of(connection).null_in_order.format(column=sql), tuple(params)


def read_clock(connection: BaseDatabaseWrapper) -> datetime.datetime:
    """Return the database's now as Django reads moments from it: with a time zone if USE_TZ is on.

    In UTC; but where ``TIME_ZONE`` is set for a database that stores plain text, Django reads all of them as moments of
    that zone (E013), and only what is read in the same way can be compared.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {of(connection).now}", ())
        (found,) = cursor.fetchone()
    moment: datetime.datetime = datetime.datetime.fromisoformat(found) if isinstance(found, str) else found
    plain = moment.astimezone(datetime.UTC).replace(tzinfo=None) if moment.tzinfo else moment
    if not settings.USE_TZ:
        return plain
    return plain.replace(tzinfo=datetime.UTC if moment.tzinfo else connection.timezone)


def in_columns(moment: datetime.datetime, connection: BaseDatabaseWrapper) -> datetime.datetime:
    """Return a moment of the project's as a column has it: without USE_TZ it is one of TIME_ZONE, but text is UTC."""
    if settings.USE_TZ:
        return moment
    if connection.features.supports_timezones:  # without a zone it would be ambiguous when clocks go back
        return aware(moment)
    return aware(moment).astimezone(datetime.UTC).replace(tzinfo=None)


def from_columns(moment: datetime.datetime, connection: BaseDatabaseWrapper) -> datetime.datetime:
    """Return a moment that was read from a column, with a time zone."""
    if timezone.is_naive(moment):
        moment = moment.replace(tzinfo=_zone_of_columns(connection))
    return moment.astimezone(datetime.UTC)


def aware(moment: datetime.datetime) -> datetime.datetime:
    """Return a moment of the project's with a time zone."""
    return timezone.make_aware(moment) if timezone.is_naive(moment) else moment


def for_project(moment: datetime.datetime) -> datetime.datetime:
    """Return a moment that has a time zone as the project has them: without USE_TZ one of TIME_ZONE without a zone."""
    return moment if settings.USE_TZ else timezone.make_naive(moment)


def _zone_of_columns(connection: BaseDatabaseWrapper) -> datetime.tzinfo:
    return timezone.get_default_timezone() if connection.features.supports_timezones else datetime.UTC


class KeyField(CharField):
    """Text that is compared byte by byte on every database; MySQL's default collation would ignore case."""

    mysql_collation = "utf8mb4_bin"

    def deconstruct(self) -> Any:
        # Migrations name the public place of this class, wherever it is defined.
        name, _, args, kwargs = super().deconstruct()
        return name, "resourcepool.dialect.KeyField", args, kwargs


class FenceField(BigIntegerField):
    """A number of which no row that is made later has an equal or a lower one: a new row's 0 is the database's clock.

    Not promised where the server's clock is set back, nor for two rows of one key within a millisecond on SQLite.
    """

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """Return what is stored: of a new row the clock, unless it says where it goes on.

        One that was read before its row was deleted, and is saved after that, is a new row: its fence is an old one.
        """
        value = super().pre_save(model_instance, add)
        return DbMicros() if add and (value == 0 or not model_instance._state.adding) else value

    @property
    def db_returning(self) -> bool:
        """Whether the instance learns from the insertion what was stored; on MySQL 8 it says 0 until it is read."""
        return bool(connection.features.can_return_columns_from_insert)

    def deconstruct(self) -> Any:
        # The column is a whole number like any other: nothing to migrate.
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.BigIntegerField", args, kwargs

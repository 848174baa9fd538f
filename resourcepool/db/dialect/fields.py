"""Model fields and expressions that behave the same on every database; the database's clock in querysets and Python."""

import datetime
import math
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import connection, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import expressions
from django.utils import timezone

from resourcepool.db.dialect.base import micros
from resourcepool.db.dialect.connections import of
from resourcepool.options import DAY
from resourcepool.text import CharField
from resourcepool.translation import gettext_lazy as _


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


if TYPE_CHECKING:
    BigIntegerField = models.BigIntegerField[Any, Any]
else:  # Django's fields take no type parameters when they run
    BigIntegerField = models.BigIntegerField


class KeyField(CharField):
    """Text compared byte by byte on every database; MySQL's default collation ignores case."""

    mysql_collation = "utf8mb4_bin"

    def deconstruct(self) -> Any:
        # The public path, so that migrations do not depend on this module.
        name, _, args, kwargs = super().deconstruct()
        return name, "resourcepool.db.dialect.KeyField", args, kwargs


class FenceField(BigIntegerField):
    """Starts at the database's clock (microseconds), so a recreated row never repeats a fence.

    Not promised if the server's clock is set back, nor for two rows of one key within a millisecond on SQLite.
    """

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """Return the clock for a new row, unless it has a fence.

        An instance that was read before its row was deleted, and saved after that, is a new row with an old fence.
        """
        value = super().pre_save(model_instance, add)
        return DbMicros() if add and (value == 0 or not model_instance._state.adding) else value

    @property
    def db_returning(self) -> bool:
        """Whether the INSERT returns the stored value; on MySQL 8 the instance has 0 until it is read again."""
        return bool(connection.features.can_return_columns_from_insert)

    def deconstruct(self) -> Any:
        # The column is an ordinary big integer, so there is nothing to migrate.
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.BigIntegerField", args, kwargs


if TYPE_CHECKING:
    Lookup = models.Lookup[str]
else:  # Django's takes no type parameter when it runs
    Lookup = models.Lookup

AFTER = chr(0x10FFFF)  # sorts after every other character


@KeyField.register_lookup
class Begins(Lookup):
    """``begins``: Django's ``startswith`` ignores case on SQLite, and its LIKE BINARY uses no index on MySQL."""

    lookup_name = "begins"

    def as_sql(self, compiler: Any, connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        """Return a LIKE, because keys are compared byte by byte."""
        lhs, params = self.process_lhs(compiler, connection)
        return f"{lhs} LIKE %s", [*params, f"{connection.ops.prep_for_like_query(self.rhs)}%"]

    def as_sqlite(self, compiler: Any, connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        """Return a range, because SQLite's LIKE ignores case."""
        lhs, params = self.process_lhs(compiler, connection)
        return f"({lhs} >= %s AND {lhs} < %s)", [*params, self.rhs, *params, f"{self.rhs}{AFTER}"]

    # With an index, LIKE misses keys whose next character is beyond U+FFFF (measured on MariaDB 10.11).
    as_mysql = as_sqlite


def check_finite(value: float) -> None:
    """Raise ValidationError for NaN and infinity."""
    if not math.isfinite(value):
        raise ValidationError(_("Enter a number of seconds."))


def seconds(name: Any, default: float, help_text: Any, least: float = 0.0, most: float = DAY) -> Any:
    """Return a column for seconds from ``least`` to ``most``."""
    limits: list[Any] = [check_finite, MinValueValidator(least), MaxValueValidator(most)]
    return models.FloatField(name, default=default, validators=limits, help_text=help_text)


def is_seconds(column: Any) -> bool:
    """Whether a column was made by ``seconds``."""
    validators = getattr(column, "validators", ())
    return check_finite in validators and any(isinstance(one, MaxValueValidator) for one in validators)


def whole(name: Any, default: int, help_text: Any, least: int, most: int) -> Any:
    """Return a column for whole numbers from ``least`` to ``most``."""
    limits: list[Any] = [MinValueValidator(least), MaxValueValidator(most)]
    return models.PositiveIntegerField(name, default=default, validators=limits, help_text=help_text)

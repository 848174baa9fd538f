"""Model fields that behave the same on every database, and fields for numbers with limits, for admin forms."""

import math
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import connection, models
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db.dialect.expressions import DbMicros
from resourcepool.options import DAY
from resourcepool.text import CharField
from resourcepool.translation import gettext_lazy as _

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

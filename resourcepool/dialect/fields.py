"""Model fields that mean the same on every database."""

from typing import TYPE_CHECKING, Any

from django.db import connection, models
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.expressions import DbMicros

if TYPE_CHECKING:
    BigIntegerField = models.BigIntegerField[Any, Any]
    CharField = models.CharField[Any, Any]
else:  # Django's fields take no type parameters when they run
    BigIntegerField, CharField = models.BigIntegerField, models.CharField


class KeyField(CharField):
    """Text that is compared byte by byte on every database; MySQL's default collation would ignore case."""

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Any:
        parameters = super().db_parameters(connection)
        if connection.vendor == "mysql":
            parameters["collation"] = "utf8mb4_bin"
        return parameters

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

"""Model fields that mean the same on every database."""

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

if TYPE_CHECKING:
    CharField = models.CharField[Any, Any]
else:  # Django's fields take no type parameters when they run
    CharField = models.CharField


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

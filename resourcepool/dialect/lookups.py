"""The lookup ``begins`` of key fields, which can use an index on every database."""

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.expressions import KeyField

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

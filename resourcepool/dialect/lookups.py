"""A condition on how a key begins that an index answers, and that is no pattern."""

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.expressions import KeyField

if TYPE_CHECKING:
    Lookup = models.Lookup[str]
else:  # Django's takes no type parameter when it runs
    Lookup = models.Lookup

AFTER = chr(0x10FFFF)  # after every character of a text


@KeyField.register_lookup
class Begins(Lookup):
    """``begins``; Django's ``startswith`` ignores case on SQLite, and no index on MySQL answers its LIKE BINARY."""

    lookup_name = "begins"

    def as_sql(self, compiler: Any, connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        """Return a LIKE: keys are compared byte by byte."""
        lhs, params = self.process_lhs(compiler, connection)
        return f"{lhs} LIKE %s", [*params, f"{connection.ops.prep_for_like_query(self.rhs)}%"]

    def as_sqlite(self, compiler: Any, connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        """Return a range, as its LIKE ignores case."""
        lhs, params = self.process_lhs(compiler, connection)
        return f"({lhs} >= %s AND {lhs} < %s)", [*params, self.rhs, *params, f"{self.rhs}{AFTER}"]

    # An index that answers LIKE misses keys whose next character is beyond U+FFFF (measured on MariaDB 10.11).
    as_mysql = as_sqlite

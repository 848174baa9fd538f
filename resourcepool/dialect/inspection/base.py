"""What can be asked of every database."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.sessions import Session


@dataclass(frozen=True, slots=True)
class TableFacts:
    """How a table was made.

    Attributes:
        engine: the storage engine; None where there is only one.
        folding: columns that are not compared byte by byte: {column: collation}.
    """

    engine: str | None
    folding: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TableAccess:
    """One table that a statement reads.

    Attributes:
        index: what its rows are found by; None when all of them are read.
        by_key: that index is the primary key's.
    """

    table: str
    index: str | None
    by_key: bool = False


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """How the database would run a statement.

    Attributes:
        sorts: it sorts what it has found, instead of reading along an index.
        is_forced: it does not depend on how big the tables are today.
    """

    steps: tuple[TableAccess, ...]
    sorts: bool
    is_forced: bool


class Inspector:
    """Asks one connection; nothing that it sends changes anything, and it may be used in a transaction."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self.connection = connection

    def product(self) -> str:
        """Return name and version of the server."""
        raise NotImplementedError

    def server(self) -> dict[str, Any]:
        """Return {name: value} of what matters to leases; the names are the server's where it has one.

        What does not apply to this server is left out.
        """
        raise NotImplementedError

    def tables(self, names: Collection[str]) -> dict[str, TableFacts]:
        """Return the facts of those of these tables that exist."""
        raise NotImplementedError

    def explain(self, sql: str, params: Sequence[Any]) -> QueryPlan:
        """Return the plan of a statement, which is not run."""
        raise NotImplementedError

    def lockers(self, table: str, pk: str, keys: Collection[Any]) -> dict[Any, Session | None]:
        """Return {key: the session that has its row locked now; None: it cannot be seen} of those that are locked.

        Args:
            table, pk: quoted names.
        """
        return {}

    def _rows(self, sql: str, params: Sequence[Any] = ()) -> list[Any]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, params)
            return list(cursor.fetchall())

    def _records(self, sql: str, params: Sequence[Any]) -> list[dict[str, Any]]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, params)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def dotted(version: Sequence[int]) -> str:
    """Return a version as people write it."""
    return ".".join(str(part) for part in version)

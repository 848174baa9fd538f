"""What can be asked of every database, and how it answers."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper


@dataclass(frozen=True, slots=True)
class Session:
    """One that has a row locked.

    Attributes:
        number: by which the server knows it.
        client: where it comes from, "host:port"; "": from the server's own.
        idle: for how many seconds it has asked nothing; None: a statement of it runs, or that is not known.
        command: the statement that ends it.
    """

    number: int
    client: str
    idle: float | None
    command: str


@dataclass(frozen=True, slots=True)
class TableFacts:
    """How a table was made.

    Attributes:
        engine: the storage engine; None where there is only one.
        folding: columns that are not compared byte by byte: {column: collation}.
        narrow: columns that do not hold every character: {column: character set}.
    """

    engine: str | None
    folding: Mapping[str, str]
    narrow: Mapping[str, str]


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
        """Return {key: the session that has its row locked; None: it cannot be seen} for the rows that are locked now.

        Args:
            table, pk: quoted names.
        """
        return {}

    def _rows(self, sql: str, params: Sequence[Any] = ()) -> list[Any]:
        return rows(self.connection, sql, params)


def rows(connection: BaseDatabaseWrapper, sql: str, params: Sequence[Any] = ()) -> list[Any]:
    """Return all rows of a statement's answer."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


def dotted(version: Sequence[int]) -> str:
    """Return a version as people write it."""
    return ".".join(str(part) for part in version)

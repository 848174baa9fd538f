"""Reads a database's configuration, plans and locks in a common form, without judging it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.module_loading import import_string


@dataclass(frozen=True, slots=True)
class Session:
    """A session that locks a row.

    Attributes:
        number: its number on the database server.
        client: "host:port"; "": the server's own host.
        idle: seconds since its last statement; None: it is running one, or unknown.
        command: the statement that ends it.
    """

    number: int
    client: str
    idle: float | None
    command: str


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The properties of a table.

    Attributes:
        engine: the storage engine; None if the database has only one.
        non_binary_collations: columns not compared byte by byte: {column: collation}.
        incomplete_charsets: columns that cannot store every character: {column: character set}.
    """

    engine: str | None
    non_binary_collations: Mapping[str, str]
    incomplete_charsets: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TableAccess:
    """A table read by a statement.

    Attributes:
        index: the index used; None: a full scan.
        by_key: whether that is the primary key's index.
    """

    table: str
    index: str | None
    by_key: bool = False


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The plan of a statement.

    Attributes:
        sorts: whether it sorts rows instead of reading them by an index.
        is_forced: whether the plan is independent of the current table sizes.
    """

    steps: tuple[TableAccess, ...]
    sorts: bool
    is_forced: bool


INSPECTORS = {
    "mysql": "resourcepool.db.inspection.mysql.MySQLInspector",
    "postgresql": "resourcepool.db.inspection.postgresql.PostgreSQLInspector",
    "sqlite": "resourcepool.db.inspection.sqlite.SQLiteInspector",
}


class Inspector:
    """Reads from one connection without changing anything; it may be used in a transaction."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self.connection = connection

    def product(self) -> str:
        """Return the name and version of the database server."""
        raise NotImplementedError

    def server(self) -> dict[str, Any]:
        """Return {name: value} of the settings that matter to leases, under the server's own names if it has them.

        Settings that this server does not have are left out.
        """
        raise NotImplementedError

    def tables(self, names: Collection[str]) -> dict[str, TableFacts]:
        """Return the properties of the existing tables among ``names``."""
        raise NotImplementedError

    def explain(self, sql: str, params: Sequence[Any]) -> QueryPlan:
        """Return the plan of a statement without running it."""
        raise NotImplementedError

    def lockers(self, table: str, pk: str, keys: Collection[Any]) -> dict[Any, Session | None]:
        """Return {key: the session that locks its row; None: unknown} for the rows that are locked now.

        MariaDB and MySQL: known if only one session has locked rows. For a connection without a transaction.

        Args:
            table, pk: quoted names.
        """
        return {}

    def sessions(self) -> tuple[int, int] | None:
        """Return how many sessions are open on the server, and how many it allows; None: there is no limit."""
        return None

    def _rows(self, sql: str, params: Sequence[Any] = ()) -> list[Any]:
        return rows(self.connection, sql, params)


def rows(connection: BaseDatabaseWrapper, sql: str, params: Sequence[Any] = ()) -> list[Any]:
    """Return all rows of a statement's answer."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


def dotted(version: Sequence[int]) -> str:
    """Return a version as text: "10.11.6"."""
    return ".".join(str(part) for part in version)


def inspector(connection: BaseDatabaseWrapper) -> Inspector:
    """Return the inspector of ``connection``; its database must be supported."""
    found: Inspector = import_string(INSPECTORS[connection.vendor])(connection)
    return found

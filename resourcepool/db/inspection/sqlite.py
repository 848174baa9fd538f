"""Inspects SQLite."""

import re
from collections.abc import Collection, Sequence
from typing import Any

from resourcepool.db.inspection import Inspector, QueryPlan, TableAccess, TableFacts, dotted

READ = re.compile(
    r"(?:SCAN|SEARCH) (?!CONSTANT)(?:TABLE )?(?P<table>.+?)"
    r"(?: USING (?:(?:COVERING )?INDEX (?P<index>.+?)|(?P<key>INTEGER PRIMARY KEY)|AUTOMATIC .+?)(?: \(.*)?)?$"
)


class SQLiteInspector(Inspector):
    """SQLite."""

    def product(self) -> str:
        return f"SQLite {dotted(self._version)}"

    def server(self) -> dict[str, Any]:
        # First, because the other values are known once connected.
        busy_timeout = self._pragma("busy_timeout") / 1_000
        facts = {
            "sqlite": self._version,
            "busy_timeout": busy_timeout,
            "transaction_mode": (getattr(self.connection, "transaction_mode", None) or "DEFERRED").upper(),
            "in_memory": bool(self.connection.is_in_memory_db()),  # type: ignore[attr-defined]
        }
        if not facts["in_memory"]:
            facts |= {"journal_mode": self._pragma("journal_mode"), "synchronous": self._pragma("synchronous")}
        return facts

    def tables(self, names: Collection[str]) -> dict[str, TableFacts]:
        read = self.connection.introspection
        with self.connection.cursor() as cursor:
            there_are = set(read.table_names(cursor, include_views=True))
            return {
                name: TableFacts(None, _folding(read.get_table_description(cursor, name)), {})
                for name in names
                if name in there_are
            }

    def explain(self, sql: str, params: Sequence[Any]) -> QueryPlan:
        lines = [row[-1] for row in self._rows(f"EXPLAIN QUERY PLAN {sql}", params)]
        read = [match for match in map(READ.match, lines) if match]
        return QueryPlan(
            tuple(_access(match["table"], match["index"] or match["key"]) for match in read),
            sorts=any("TEMP B-TREE FOR ORDER BY" in line for line in lines),
            is_forced=False,
        )

    @property
    def _version(self) -> tuple[int, ...]:
        return tuple(self.connection.Database.sqlite_version_info)  # type: ignore[attr-defined]

    def _pragma(self, name: str) -> Any:
        return self._rows(f"PRAGMA {name}")[0][0]


def _folding(columns: Any) -> dict[str, str]:
    return {
        column.name: column.collation
        for column in columns
        if column.collation and column.collation.upper() != "BINARY"
    }


def _access(table: str, index: str | None) -> TableAccess:
    # The index of a non-integer primary key has this name. So has a unique constraint in CREATE TABLE, but on leased
    # models Django writes none besides the key.
    by_key = index == "INTEGER PRIMARY KEY" or (index or "").startswith("sqlite_autoindex_")
    return TableAccess(table, index, by_key)

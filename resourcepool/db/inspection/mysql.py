"""Inspects MariaDB and MySQL."""

import contextlib
import random
import re
import time
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from django.db import DatabaseError

from resourcepool.db.inspection import Inspector, QueryPlan, Session, TableAccess, TableFacts, dotted

ALL_CHARACTERS = "utf8mb4"  # the only complete character set
FOUND_ROWS = 2  # client flag: the row count of an UPDATE includes matched, unchanged rows
NUMBERS = ("innodb_flush_log_at_trx_commit", "innodb_lock_wait_timeout", "innodb_page_size")
IDLE = ("idle_transaction_timeout", "wait_timeout")  # MySQL has only the second one
OPTIONS = ("connect_timeout", "read_timeout")
TEXTS = ("character_set_client", "character_set_database", "innodb_default_row_format")
TREE_STEP = re.compile(r"-> [A-Za-z -]*(?:scan|lookup) on (\w+)(?: using (\w+))?")
# Queries for the holders of locks, and seconds before each, at random: the server refreshes its answer only after a
# tenth of a second without queries, so clients that query in turn at a fixed pace would see an old answer for ever.
TRIES, PAUSES = 3, (0.12, 0.3)
# Sessions whose transaction has locked rows; docs/operations/databases.md shows it to operators.
LOCK_HOLDERS = """
    SELECT one.id, one.host, one.command, one.time
    FROM information_schema.innodb_trx trx
    JOIN information_schema.processlist one ON one.id = trx.trx_mysql_thread_id
    WHERE trx.trx_rows_locked > 0 AND trx.trx_state <> 'LOCK WAIT' AND one.db = DATABASE()
"""
READ_ONLY = ("read_only", "super_read_only", "innodb_read_only")
VARIABLES = (
    *(*NUMBERS, *TEXTS, *IDLE, *READ_ONLY, "tx_isolation", "transaction_isolation"),
    *("log_bin", "sync_binlog", "wsrep_on"),
)


class MySQLInspector(Inspector):
    """MariaDB and MySQL."""

    def product(self) -> str:
        return f"{'MariaDB' if self._is_mariadb else 'MySQL'} {dotted(self.connection.mysql_version)}"  # type: ignore[attr-defined]

    def server(self) -> dict[str, Any]:
        places = ", ".join(["%s"] * len(VARIABLES))
        variables = dict(self._rows(f"SHOW VARIABLES WHERE Variable_name IN ({places})", VARIABLES))
        options = self.connection.get_connection_params()
        facts: dict[str, Any] = {
            "mariadb" if self._is_mariadb else "mysql": self.connection.mysql_version,  # type: ignore[attr-defined]
            "transaction_isolation": variables.get("transaction_isolation") or variables.get("tx_isolation"),
            "counts_matched_rows": bool(int(options.get("client_flag", 0)) & FOUND_ROWS),
            "read_only": any(variables.get(name, "OFF") not in ("OFF", "0") for name in READ_ONLY),
            "wsrep_on": variables.get("wsrep_on", "OFF") == "ON",
            **{name: int(variables[name]) for name in NUMBERS if name in variables},
            **{name: variables[name] for name in TEXTS if name in variables},
            **{name: options.get(name) or 0 for name in OPTIONS},
        }
        idle, session = (int(variables.get(name, 0)) for name in IDLE)
        facts[IDLE[0] if self._is_mariadb else IDLE[1]] = idle or session
        if variables.get("log_bin") == "ON":
            facts["sync_binlog"] = int(variables["sync_binlog"])
        with contextlib.suppress(DatabaseError):  # this user has no permission
            facts["replicates"] = bool(self._rows(self._replication))
        return facts

    def tables(self, names: Collection[str]) -> dict[str, TableFacts]:
        places = ", ".join(["%s"] * len(names))
        where = f"WHERE table_schema = DATABASE() AND table_name IN ({places})"
        engines = self._rows(f"SELECT table_name, engine FROM information_schema.tables {where}", [*names])  # noqa: S608
        selected = "table_name, column_name, collation_name, character_set_name"
        from_columns = (
            f"SELECT {selected} FROM information_schema.columns {where} AND collation_name IS NOT NULL"  # noqa: S608
        )
        columns = self._rows(from_columns, [*names])
        non_binary_collations: dict[str, dict[str, str]] = defaultdict(dict)
        incomplete_charsets: dict[str, dict[str, str]] = defaultdict(dict)
        for table, column, collation, characters in columns:
            if "bin" not in collation:
                non_binary_collations[table][column] = collation
            if characters != ALL_CHARACTERS:
                incomplete_charsets[table][column] = characters
        return {
            name: TableFacts(engine, non_binary_collations[table], incomplete_charsets[table])
            for table, engine in engines
            for name in names
            if name.lower() == table.lower()
        }

    def explain(self, sql: str, params: Sequence[Any]) -> QueryPlan:
        if not self._is_mariadb and sql.lstrip().startswith("SELECT"):
            return self._explain_by_tree(sql, params)
        # TRADITIONAL, because MySQL's default is a tree. SET STATEMENT comes first:
        # SET STATEMENT .. FOR EXPLAIN UPDATE ..
        explain = re.sub(r"^(SET STATEMENT .+? FOR )?", r"\1EXPLAIN FORMAT=TRADITIONAL ", sql, count=1)
        with self.connection.cursor() as cursor:
            cursor.execute(explain, params)
            names = [column[0] for column in cursor.description]
            steps = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        read = [step for step in steps if step["table"] and not step["table"].startswith("<")]
        sorts = any("filesort" in (step["Extra"] or "") for step in steps)
        return QueryPlan(tuple(map(_access, read)), sorts=sorts, is_forced=False)

    def _explain_by_tree(self, sql: str, params: Sequence[Any]) -> QueryPlan:
        # The traditional format shows a full scan where MySQL reads an index for the order of its rows.
        with self.connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN FORMAT=TREE {sql}", params)
            tree = str(cursor.fetchone()[0])
        read = [
            TableAccess(table, index or None, index == "PRIMARY") for table, index in TREE_STEP.findall(tree)
        ]
        return QueryPlan(tuple(read), sorts="-> Sort" in tree, is_forced=False)

    def lockers(self, table: str, pk: str, keys: Collection[Any]) -> dict[Any, Session | None]:
        places = ", ".join(["%s"] * len(keys))
        rows = f"SELECT {pk} FROM {table} WHERE {pk} IN ({places})"  # noqa: S608 (quoted names)
        unlocked = {key for (key,) in self._rows(f"{rows} FOR UPDATE SKIP LOCKED", [*keys])}
        locked = [key for (key,) in self._rows(rows, [*keys]) if key not in unlocked]
        # The server does not say who locks which row, except to sessions that wait for it.
        return dict.fromkeys(locked, self._only_holder() if locked else None)

    def _only_holder(self) -> Session | None:
        """Return the session that has locked rows, if there is one and this user may see it."""
        with contextlib.suppress(DatabaseError):  # no permission
            for _ in range(TRIES):
                time.sleep(random.uniform(*PAUSES))  # noqa: S311 (no secret)
                if len(holders := self._rows(LOCK_HOLDERS)) == 1:
                    return _session(*holders[0])
        return None

    def sessions(self) -> tuple[int, int] | None:
        ((_name, used),) = self._rows("SHOW GLOBAL STATUS LIKE 'Threads_connected'")
        ((most,),) = self._rows("SELECT @@max_connections")
        return int(used), int(most)

    @property
    def _is_mariadb(self) -> bool:
        return bool(self.connection.mysql_is_mariadb)  # type: ignore[attr-defined]

    @property
    def _replication(self) -> str:
        if self._is_mariadb:
            return "SHOW ALL SLAVES STATUS"
        return "SHOW REPLICA STATUS" if self.connection.mysql_version >= (8, 0, 22) else "SHOW SLAVE STATUS"  # type: ignore[attr-defined]


def _session(number: int, client: str | None, command: str, seconds: Any) -> Session:
    idle = float(seconds) if command == "Sleep" and seconds is not None else None
    return Session(int(number), client or "", idle, f"KILL {number}")


def _access(step: dict[str, Any]) -> TableAccess:
    index = None if step["type"] == "ALL" else step["key"] or "-"
    return TableAccess(step["table"], index, by_key=index == "PRIMARY")

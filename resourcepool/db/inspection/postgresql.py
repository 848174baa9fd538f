"""Inspects PostgreSQL."""

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from django.db import transaction

from resourcepool.db.dialect.connections import discard, execute, private_connection
from resourcepool.db.inspection import Inspector, QueryPlan, Session, TableAccess, TableFacts, rows

DURABLE = ("synchronous_commit", "fsync", "full_page_writes")
LIMITS = ("lock_timeout", "statement_timeout")
IDLE = "idle_in_transaction_session_timeout"
OPTIONS = ("connect_timeout", "tcp_user_timeout", "keepalives_idle")
SETTINGS = (
    *DURABLE,
    *LIMITS,
    IDLE,
    "default_transaction_isolation",
    "default_transaction_read_only",
    "server_encoding",
)
PROCESS = "SELECT pg_backend_pid()"
TRIES = 5  # pairs of sessions compared
FOLDING = """
    SELECT attname, collname FROM pg_attribute JOIN pg_collation c ON c.oid = attcollation
    WHERE attrelid = to_regclass(%s) AND NOT collisdeterministic
"""
IS_PRIMARY = """
    SELECT 1 FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE indisprimary AND relname = %s AND pg_table_is_visible(indexrelid)
"""
# xmax of a changed or locked row is the transaction's number, and each transaction locks its own number.
LOCKED_BY = """
    SELECT row.{pk}, one.pid, HOST(one.client_addr), one.client_port, one.state,
           EXTRACT(EPOCH FROM CLOCK_TIMESTAMP() - one.state_change)
    FROM {table} AS row
    JOIN pg_locks held ON held.locktype = 'transactionid' AND held.granted AND held.transactionid = row.xmax
    JOIN pg_stat_activity one ON one.pid = held.pid
    WHERE row.{pk} IN ({places}) AND held.mode = 'ExclusiveLock' AND one.pid <> PG_BACKEND_PID()
"""


SESSIONS = """
    SELECT (SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
           current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
"""


class PostgreSQLInspector(Inspector):
    """PostgreSQL."""

    def product(self) -> str:
        version = self.connection.pg_version  # type: ignore[attr-defined]
        return f"PostgreSQL {version // 10_000}.{version % 10_000}"

    def server(self) -> dict[str, Any]:
        settings = dict(
            self._rows("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [list(SETTINGS)])
        )
        ((in_recovery,),) = self._rows("SELECT pg_is_in_recovery()")
        limits = [int(settings[name]) / 1_000 for name in LIMITS]
        options = self.connection.settings_dict["OPTIONS"]
        pooler = self.connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS", False)
        return {
            "transaction_isolation": self._isolation(settings["default_transaction_isolation"]),
            "read_only": in_recovery or settings["default_transaction_read_only"] == "on",
            **{name: settings[name] for name in DURABLE},
            "server_encoding": settings["server_encoding"],
            "lock_timeout": min(filter(None, limits), default=0),
            IDLE: int(settings[IDLE]) / 1_000,
            **{name: options.get(name) or 0 for name in OPTIONS},
            "DISABLE_SERVER_SIDE_CURSORS": pooler,
            "server_processes_shared": self._shares_its_process(),
        }

    def tables(self, names: Collection[str]) -> dict[str, TableFacts]:
        quoted = {name: self.connection.ops.quote_name(name) for name in names}
        there_are = [name for name in names if self._rows("SELECT to_regclass(%s)", [quoted[name]])[0][0]]
        return {name: TableFacts(None, dict(self._rows(FOLDING, [quoted[name]])), {}) for name in there_are}

    def explain(self, sql: str, params: Sequence[Any]) -> QueryPlan:
        # Small tables are rightly scanned and sorted; with both disabled the plan shows whether an index can be used.
        with transaction.atomic(using=self.connection.alias):
            for node in ("seqscan", "bitmapscan", "sort"):
                execute(self.connection, f"SET LOCAL enable_{node} = off")
            ((plan,),) = self._rows(f"EXPLAIN (FORMAT JSON) {sql}", params)
            transaction.set_rollback(True, using=self.connection.alias)
        nodes = list(_nodes((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]))
        read = [node for node in nodes if "Relation Name" in node and node["Node Type"].endswith("Scan")]
        return QueryPlan(
            tuple(self._access(node["Relation Name"], node.get("Index Name")) for node in read),
            sorts=any(node["Node Type"] == "Sort" for node in nodes),
            is_forced=True,
        )

    def lockers(self, table: str, pk: str, keys: Collection[Any]) -> dict[Any, Session | None]:
        names = {"table": table, "pk": pk, "places": ", ".join(["%s"] * len(keys))}
        rows = self._rows(LOCKED_BY.format(**names), [*keys])
        return {key: _session(*rest) for key, *rest in rows}

    def sessions(self) -> tuple[int, int] | None:
        ((used, most),) = self._rows(SESSIONS)
        return used, most

    def _isolation(self, of_the_session: str) -> str:
        # Django's setting applies inside transaction.atomic(), the session's default outside.
        chosen = getattr(getattr(self.connection, "isolation_level", None), "name", "READ_COMMITTED")
        in_transactions = chosen.replace("_", " ").lower()
        return of_the_session if in_transactions == "read committed" else in_transactions

    def _shares_its_process(self) -> bool:
        """Whether another open session uses the same server process.

        Then a pooler in between shares server processes, together with the settings of the sessions. A busy pooler with
        many processes may go unnoticed.
        """
        own = self._rows(PROCESS)
        if own == [(backend_pid(self.connection),)]:  # a pooler reports a number of its own
            return False
        other = private_connection(self.connection.alias, has_lock_limit=False)
        try:
            return any(rows(other, PROCESS) == self._rows(PROCESS) for _ in range(TRIES))
        finally:
            discard(other)

    def _access(self, table: str, index: str | None) -> TableAccess:
        return TableAccess(table, index, by_key=bool(index and self._rows(IS_PRIMARY, [index])))


def backend_pid(connection: Any) -> int:
    """Return the server process number reported when the session was opened."""
    return int(connection.connection.info.backend_pid)


def _session(number: int, host: str | None, port: int | None, state: str | None, seconds: Any) -> Session:
    is_idle = (state or "").startswith("idle") and seconds is not None
    client = f"{host}:{port}" if host else ""
    return Session(
        number, client, float(seconds) if is_idle else None, f"SELECT pg_terminate_backend({number})"
    )


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from _nodes(inner)

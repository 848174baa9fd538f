"""Sessions of a database, which tests end from outside."""

from typing import Any

import pytest
from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.eventually import eventually

NUMBER = {"mysql": "SELECT CONNECTION_ID()", "postgresql": "SELECT pg_backend_pid()"}
END = {"mysql": "KILL %s", "postgresql": "SELECT pg_terminate_backend(%s)"}
ALIVE = {
    "mysql": "SELECT id FROM information_schema.processlist WHERE id = %s",
    "postgresql": "SELECT pid FROM pg_stat_activity WHERE pid = %s",
}


def asked(of: BaseDatabaseWrapper, sql: str, *params: Any) -> list[Any]:
    with of.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall()) if cursor.description else []


def session() -> int:
    """Return the number of the calling thread's session."""
    return int(asked(connection, NUMBER[connection.vendor])[0][0])


def end(number: int) -> None:
    """End this session from another one, as an operator or a restart does, and wait until it is gone."""
    other = connections.create_connection("default")
    try:
        asked(other, END[other.vendor], number)
        eventually(lambda: not asked(other, ALIVE[other.vendor], number))
    finally:
        other.close()


def keep_them(monkeypatch: pytest.MonkeyPatch, seconds: int | None, *, is_checked: bool = False) -> None:
    """Have threads that begin from now on keep their sessions for so long."""
    chosen = connections.settings["default"]
    monkeypatch.setitem(chosen, "CONN_MAX_AGE", seconds)
    monkeypatch.setitem(chosen, "CONN_HEALTH_CHECKS", is_checked)

"""The bare driver of each database: what the contestants that are not ours speak."""

import random
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

TRIES = 50

NOW = {
    "mysql": "UTC_TIMESTAMP(6)",
    "postgres": "CLOCK_TIMESTAMP()",
    "sqlite": "STRFTIME('%Y-%m-%d %H:%M:%f', 'now')",
}
SOON = {  # a minute from now
    "mysql": "UTC_TIMESTAMP(6) + INTERVAL 60 SECOND",
    "postgres": "CLOCK_TIMESTAMP() + INTERVAL '60 seconds'",
    "sqlite": "STRFTIME('%Y-%m-%d %H:%M:%f', 'now', '60 seconds')",
}
MOMENT = {"mysql": "DATETIME(6)", "postgres": "TIMESTAMPTZ", "sqlite": "TEXT"}


class Driver:
    """One connection in autocommit mode."""

    def __init__(self, url: str) -> None:
        self.kind = urlsplit(url).scheme
        self.now, self.soon = NOW[self.kind], SOON[self.kind]
        self.connection = CONNECT[self.kind](url)
        self.cursor = self.connection.cursor()

    def execute(self, sql: str, *params: Any) -> int:
        """Send one statement; return how many rows it matched."""
        if self.kind == "sqlite":
            sql = sql.replace("%s", "?")
        self.cursor.execute(sql, params)
        return int(self.cursor.rowcount)

    def rows(self, sql: str, *params: Any) -> list[Any]:
        self.execute(sql, *params)
        return list(self.cursor.fetchall())

    def again(self, work: Callable[[], Any]) -> Any:
        """Do ``work`` until the database takes it: deadlocks and lock waits are the contestant's to repeat."""
        for turn in range(TRIES):
            try:
                return work()
            except Exception as error:
                if not is_conflict(error) or turn == TRIES - 1:
                    raise
                if self.kind != "sqlite":
                    self.connection.rollback()
                time.sleep(random.uniform(0, 0.005))
        return None

    def close(self) -> None:
        self.connection.close()


def is_conflict(error: Exception) -> bool:
    """Tell whether this is a deadlock, a lock wait that took too long, or a locked SQLite file."""
    code = error.args[0] if error.args else None
    return code in (1213, 1205, 1020) or "deadlock" in str(error) or "locked" in str(error)


def mysql(url: str) -> Any:
    import MySQLdb
    from MySQLdb.constants import CLIENT

    at = urlsplit(url)
    connection = MySQLdb.connect(
        host=at.hostname,
        port=at.port,
        user=at.username,
        password=at.password,
        database=at.path[1:],
        charset="utf8mb4",
        autocommit=True,
        client_flag=CLIENT.FOUND_ROWS,
    )
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    return connection


def postgres(url: str) -> Any:
    import psycopg

    return psycopg.connect(url, autocommit=True)


def sqlite(url: str) -> Any:
    connection = sqlite3.connect(Path(urlsplit(url).path), timeout=20, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    return connection


CONNECT: dict[str, Callable[[str], Any]] = {"mysql": mysql, "postgres": postgres, "sqlite": sqlite}

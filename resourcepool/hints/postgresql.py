"""Hints by LISTEN and NOTIFY: a channel per process, on the database that the rows are in."""

from collections.abc import Sequence
from typing import Any

from resourcepool import dialect
from resourcepool.hints.transport import Transport

PREFIX = "resourcepool_"
NAME = "resourcepool hints"  # as which the listening sessions can be recognized in pg_stat_activity
# NOTIFY wakes every session that listens in this database, whatever its channel. So many a second cost what hints save:
# 32 listeners at 300 hints a second gained nothing, 48 at 600 lost a fifth of the rate, 128 two thirds.
MAX_WAKEUPS_PER_SECOND = 10_000
LISTENERS = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = CURRENT_DATABASE() AND application_name = %s"
# A notification is a transaction, and nobody minds if a crash forgets it: no wait for the disk. For it alone: a pooler
# may hand the session on to others.
SEND = """
    SELECT pg_notify(channel, ''), quick
    FROM (SELECT SET_CONFIG('synchronous_commit', 'off', true) AS quick OFFSET 0) AS setting,
        unnest(%s::text[]) AS channel
"""


class PostgreSQL(Transport):
    """A session of its own: a pooler in transaction mode would hand what is listened to on to others.

    A server that stands still keeps the thread waiting until it goes on; the caller's rows wait for it as well.
    """

    def __init__(self, alias: str) -> None:
        self._connection = dialect.private_connection(alias)
        self._channel = ""

    def send(self, addresses: Sequence[str]) -> None:
        self._execute(SEND, [[PREFIX + address for address in addresses]])

    def max_per_second(self) -> float:
        with self._connection.cursor() as cursor:
            cursor.execute(LISTENERS, [NAME])
            return MAX_WAKEUPS_PER_SECOND / max(1, int(cursor.fetchone()[0]))

    def subscribe(self, address: str) -> None:
        self._channel = PREFIX + address
        self._execute("SELECT SET_CONFIG('application_name', %s, false)", [NAME])
        self._execute(f"LISTEN {self._channel}")

    def receive(self, timeout: float) -> bool:
        driver: Any = self._connection.connection
        received = list(driver.notifies(timeout=timeout, stop_after=1))
        return bool(received)

    def echo(self) -> None:
        self._execute(SEND, [[self._channel]])

    def close(self) -> None:
        dialect.close_quietly(self._connection)

    def _execute(self, sql: str, params: Sequence[Any] | None = None) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(sql, params)

"""Hints over LISTEN and NOTIFY: one channel per process, on the database that holds the rows."""

from collections.abc import Sequence
from typing import Any

from resourcepool.db import dialect
from resourcepool.hints.choice import Transport

PREFIX = "resourcepool_"
NAME = "resourcepool hints"  # application_name of the listening sessions in pg_stat_activity
# NOTIFY wakes every listening session of the database, whatever its channel. More wake-ups cost more than they save:
# measured, 32 listeners at 300 hints a second gained nothing, 48 at 600 lost a fifth of the rate, 128 two thirds.
MAX_WAKEUPS_PER_SECOND = 10_000
LISTENERS = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = CURRENT_DATABASE() AND application_name = %s"
# A notification is a transaction that need not survive a crash: it does not wait for the disk. The setting is local to
# the transaction, because a pooler may share the session.
SEND = """
    SELECT pg_notify(channel, ''), quick
    FROM (SELECT SET_CONFIG('synchronous_commit', 'off', true) AS quick OFFSET 0) AS setting,
        unnest(%s::text[]) AS channel
"""


class PostgreSQL(Transport):
    """Needs a direct session: a pooler in transaction mode would pass the LISTEN on to other clients.

    If the database server hangs, the thread waits until it continues.
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

"""What the servers count themselves."""

import time
from collections.abc import Callable
from urllib.parse import urlsplit

from benchmarks.driver import Driver

EVERY = 0.2  # seconds between two reads of how many sessions there are

DEADLOCKS = {
    "mysql": "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'INNODB_DEADLOCKS'",
    "postgres": "SELECT SUM(deadlocks) FROM pg_stat_database",
}
ON_MYSQL = "SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'"

# Sessions, and statements since it started; PostgreSQL counts transactions, and one statement without BEGIN is one.
MYSQL_ACTIVITY = "SHOW GLOBAL STATUS WHERE variable_name IN ('Questions', 'Threads_connected')"
POSTGRES_ACTIVITY = (
    "SELECT numbackends, xact_commit + xact_rollback FROM pg_stat_database WHERE datname = CURRENT_DATABASE()"
)


def deadlocks(url: str) -> int:
    """Return how many deadlocks the server at ``url`` has seen since it started; SQLite knows none."""
    if (kind := urlsplit(url).scheme) not in DEADLOCKS:
        return 0
    db = Driver(url)
    try:
        is_mysql = kind == "mysql" and "MariaDB" not in str(db.rows("SELECT VERSION()"))
        return int(db.rows(ON_MYSQL if is_mysql else DEADLOCKS[kind])[0][0])
    finally:
        db.close()


class Activity:
    """Watches the server while others work on it.

    Attributes:
        sessions: the most at once, its own left out; None on SQLite, like ``statements``.
        statements: a second, while it is counted; on PostgreSQL transactions. None also where that was too short.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self.sessions: int | None = None
        self.statements: float | None = None

    def watch(self, begin_at: float, end_at: float) -> None:
        """Read again and again until ``end_at``; statements count from ``begin_at``."""
        if urlsplit(self._url).scheme == "sqlite":
            return
        db = Driver(self._url)
        read = _mysql(db) if db.kind == "mysql" else _postgres(db)
        reads = [(time.monotonic(), *read())]
        while time.monotonic() + EVERY < end_at:
            time.sleep(EVERY)
            reads.append((time.monotonic(), *read()))
        db.close()
        self.sessions = max(sessions for _, sessions, _ in reads) - 1
        counted = [(at, statements) for at, _, statements in reads if at >= begin_at]
        if len(counted) > 1:
            (first, before), (last, after) = counted[0], counted[-1]
            self.statements = (after - before) / (last - first)


def _mysql(db: Driver) -> Callable[[], tuple[int, int]]:
    def read() -> tuple[int, int]:
        found = dict(db.rows(MYSQL_ACTIVITY))
        return int(found["Threads_connected"]), int(found["Questions"])

    return read


def _postgres(db: Driver) -> Callable[[], tuple[int, int]]:
    return lambda: db.rows(POSTGRES_ACTIVITY)[0]

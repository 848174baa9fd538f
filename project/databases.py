"""``DATABASE_URL`` as an entry of Django's DATABASES, with the options for safe and fast leases."""

from pathlib import Path
from typing import Any

import dj_database_url

from project.environment import PRIVATE_MODE

SQLITE = {
    # Without IMMEDIATE, a transaction that reads before it writes may fail at once, whatever the timeout.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    # FULL: with NORMAL, a power cut may lose the last commits, and a fence might be granted twice.
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
}
MYSQL = {
    "charset": "utf8mb4",
    "isolation_level": "read committed",
    # Against a server that freezes or vanishes; read_timeout must be longer than the longest statement.
    "connect_timeout": 5,
    "read_timeout": 60,
    "write_timeout": 60,
    # Only MariaDB executes /*M! .. */. The limits end transactions of hosts that have vanished.
    "init_command": "SET innodb_lock_wait_timeout=5, wait_timeout=600 /*M!, idle_transaction_timeout=300 */"
    ", sql_mode=CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES')",
}
POSTGRESQL = {
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,  # ms
    "keepalives_idle": 10,
    "options": "-c lock_timeout=5s -c idle_in_transaction_session_timeout=300s",
}

OPTIONS: dict[str, dict[str, Any]] = {
    "django.db.backends.sqlite3": SQLITE,
    "django.db.backends.mysql": MYSQL,
    "django.db.backends.postgresql": POSTGRESQL,
}


def database(url: str) -> dict[str, Any]:
    """Return the settings for ``url``; options in its query part take precedence."""
    chosen: dict[str, Any] = {**dj_database_url.parse(url, conn_max_age=60, conn_health_checks=True)}
    chosen["OPTIONS"] = {**OPTIONS.get(chosen["ENGINE"], {}), **chosen.get("OPTIONS", {})}
    if chosen["ENGINE"] == "django.db.backends.sqlite3" and chosen["NAME"] != ":memory:":
        file = Path(chosen["NAME"]).absolute()
        file.parent.mkdir(PRIVATE_MODE, parents=True, exist_ok=True)
        # Tests with threads and child processes need a shared file.
        chosen |= {"NAME": str(file), "TEST": {"NAME": str(file.with_name(f"test_{file.name}"))}}
    return chosen

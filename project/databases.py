"""``DATABASE_URL`` as an entry for Django's DATABASES, with what each database needs to lease safely and quickly."""

from pathlib import Path
from typing import Any

import dj_database_url

from project.environment import PRIVATE_MODE

SQLITE = {
    # A transaction that reads first and writes later fails at once, whatever the timeout, unless it says so up front.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    # FULL: a fence that has been handed out must not come back after a power cut; NORMAL may forget the last commits.
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
}
MYSQL = {
    "charset": "utf8mb4",
    "isolation_level": "read committed",
    "connect_timeout": 5,
    "init_command": "SET innodb_lock_wait_timeout=5, sql_mode=CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES')",
}
POSTGRESQL = {"connect_timeout": 5, "options": "-c lock_timeout=5s"}

OPTIONS: dict[str, dict[str, Any]] = {
    "django.db.backends.sqlite3": SQLITE,
    "django.db.backends.mysql": MYSQL,
    "django.db.backends.postgresql": POSTGRESQL,
}


def database(url: str) -> dict[str, Any]:
    """Return the settings for ``url``; options in its query part win over ours."""
    chosen: dict[str, Any] = {**dj_database_url.parse(url, conn_max_age=60, conn_health_checks=True)}
    chosen["OPTIONS"] = {**OPTIONS.get(chosen["ENGINE"], {}), **chosen.get("OPTIONS", {})}
    if chosen["ENGINE"] == "django.db.backends.sqlite3" and chosen["NAME"] != ":memory:":
        file = Path(chosen["NAME"]).absolute()
        file.parent.mkdir(PRIVATE_MODE, parents=True, exist_ok=True)
        # Tests with threads and child processes need a file that all of them can open.
        chosen |= {"NAME": str(file), "TEST": {"NAME": str(file.with_name(f"test_{file.name}"))}}
    return chosen

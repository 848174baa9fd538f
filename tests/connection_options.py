"""The connection options of docs/operations/databases.md, short enough for a test, for other processes."""

from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from django.db import connection


def with_options(url: str, **options: Any) -> str:
    """Return this DATABASE_URL with OPTIONS."""
    return urlsplit(url)._replace(query=urlencode(options, quote_via=quote)).geturl()


def short_waits(seconds: int) -> dict[str, Any]:
    """Return the options that limit waits for a frozen server; PostgreSQL's driver has none for its replies."""
    if connection.vendor == "mysql":
        return dict.fromkeys(("connect_timeout", "read_timeout", "write_timeout"), seconds)
    return {"connect_timeout": seconds}


def short_idle(seconds: int) -> dict[str, Any]:
    """Return the options with which the server ends an open transaction after this many seconds of silence."""
    if connection.vendor == "mysql":
        name = "idle_transaction_timeout" if connection.mysql_is_mariadb else "wait_timeout"
        return {"init_command": f"SET innodb_lock_wait_timeout=5, {name}={seconds}"}
    return {"options": f"-c lock_timeout=5s -c idle_in_transaction_session_timeout={seconds}s"}

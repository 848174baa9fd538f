"""SQLite."""

from resourcepool.db.dialect.base import Dialect, ErrorKind, unlisted


class SQLite(Dialect):
    """SQLite. Datetimes are text; its clock has milliseconds."""

    now = indexed_now = "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'now')"
    clock_step = 0.001
    later = "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'now', (%s / 1000000.0) || ' seconds')"
    greatest = "MAX"
    micros_now = "CAST(ROUND((JULIANDAY('now') - 2440587.5) * 86400000000) AS INTEGER)"
    fresh_number = "({micros_now} + ABS(RANDOM() %% 1000))"  # its clock has milliseconds
    micros_until = "CAST(ROUND((JULIANDAY({moment}) - JULIANDAY('now')) * 86400000000) AS INTEGER)"
    lock_options = {"timeout": 2}
    exists_is_slow = False

    def error_kind(self, error: Exception) -> ErrorKind | None:
        message = str(error)
        if "locked" in message or "busy" in message:
            return ErrorKind.CONFLICT
        lacks = ("no such table", "no such column", "has no column")
        if any(words in message for words in lacks):
            return ErrorKind.NOT_MIGRATED
        if "unable to open database file" in message:
            return ErrorKind.LOGIN
        return None if "syntax error" in message else unlisted(error)

"""What the servers count themselves."""

from urllib.parse import urlsplit

from benchmarks.driver import Driver

DEADLOCKS = {
    "mysql": "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'INNODB_DEADLOCKS'",
    "postgres": "SELECT SUM(deadlocks) FROM pg_stat_database",
}

ON_MYSQL = "SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'"


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

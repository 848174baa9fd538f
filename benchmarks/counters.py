"""What the servers count themselves."""

from urllib.parse import urlsplit

from benchmarks.driver import Driver

DEADLOCKS = {
    "mysql": "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'INNODB_DEADLOCKS'",
    "postgres": "SELECT SUM(deadlocks) FROM pg_stat_database",
}


def deadlocks(url: str) -> int:
    """Return how many deadlocks the server at ``url`` has seen since it started; SQLite knows none."""
    if (kind := urlsplit(url).scheme) not in DEADLOCKS:
        return 0
    db = Driver(url)
    try:
        return int(db.rows(DEADLOCKS[kind])[0][0])
    finally:
        db.close()

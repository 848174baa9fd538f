"""A session of PostgreSQL that holds an advisory lock."""

import os
import threading
from collections.abc import Callable

import psycopg
from election_peer import main


def connected() -> psycopg.Connection:
    return psycopg.connect(os.environ["URL"], autocommit=True)


def lead(begun: Callable[[], None], stopped: threading.Event) -> None:
    with connected() as connection:
        connection.execute("SELECT pg_advisory_lock(1)")
        begun()
        stopped.wait()


def standbys() -> int:
    with connected() as connection:
        asked = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        return connection.execute(asked).fetchone()[0]


if __name__ == "__main__":
    main(lead, standbys)

"""Advisory locks of PostgreSQL: a session for each that waits, and no waiter more than the server has sessions."""

import os
import zlib

import psycopg
from lock_peer import Make, Pair, main


def client() -> Make:
    def make(name: str) -> Pair:
        session = psycopg.connect(os.environ["URL"], autocommit=True)
        number = [zlib.crc32(name.encode())]
        return (
            lambda: session.execute("SELECT pg_advisory_lock(%s)", number),
            lambda: session.execute("SELECT pg_advisory_unlock(%s)", number),
        )

    return make


if __name__ == "__main__":
    main(client, ("own", "same"))

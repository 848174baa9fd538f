"""Private databases to measure on: durable, on the disk that the temporary folder is on, gone afterwards."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.servers import MariaDB, PostgreSQL
from tests.servers.server import ServerMissing, free_port

ROOT = Path(__file__).resolve().parent.parent
CONNECTIONS = 2_000  # a thread that waits keeps Django's connection of its own
START_TIMEOUT = 20.0  # seconds


@contextlib.contextmanager
def place(name: str) -> Iterator[str]:
    """Yield the URL of a fresh "mysql", "postgres", "sqlite" (migrated) or "redis"; raises ServerMissing."""
    if name == "redis":
        with _redis() as url:
            yield url
    elif name == "sqlite":
        with tempfile.TemporaryDirectory(prefix="resourcepool-bench-") as folder:
            yield migrated(f"sqlite:///{folder}/db.sqlite3")
    else:
        with {"mysql": MariaDB, "postgres": PostgreSQL}[name](max_connections=CONNECTIONS) as server:
            yield migrated(server.url)


def migrated(url: str) -> str:
    """Make the tables at ``url``; returns it."""
    environment = {**os.environ, "DATABASE_URL": url}
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=environment, check=True)
    return url


@contextlib.contextmanager
def _redis() -> Iterator[str]:
    # Debian's redis-tools has the server under another name, and unlike redis-server it starts no service.
    program, port = shutil.which("redis-server") or shutil.which("redis-check-rdb"), free_port()
    if program is None:
        raise ServerMissing("redis-server is not installed")
    import redis

    with tempfile.TemporaryDirectory(prefix="resourcepool-redis-") as folder:
        process = subprocess.Popen(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder],
            executable=program,
            stdout=subprocess.DEVNULL,
        )
        try:
            url = f"redis://127.0.0.1:{port}/0"
            deadline = time.monotonic() + START_TIMEOUT
            with redis.Redis.from_url(url) as client:
                while True:
                    with contextlib.suppress(redis.ConnectionError):
                        client.ping()
                        break
                    if time.monotonic() > deadline:
                        raise ServerMissing(f"redis-server did not answer within {START_TIMEOUT:g} s")
                    time.sleep(0.02)
            yield url
        finally:
            process.terminate()
            process.wait()

"""Private databases to measure on: durable, on the disk that the temporary folder is on, gone afterwards."""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.driver import Driver
from tests.servers import MariaDB, MySQL, PostgreSQL
from tests.servers.redis import redis_server

ROOT = Path(__file__).resolve().parent.parent
SERVERS = {"mysql": MariaDB, "oracle_mysql": MySQL, "postgres": PostgreSQL}
CONNECTIONS = 2_000  # a thread that waits keeps Django's connection of its own


@contextlib.contextmanager
def place(name: str) -> Iterator[str]:
    """Yield the URL of a fresh database (see plan.DATABASES; migrated) or of a "redis"; raises ServerMissing."""
    if name == "redis":
        with redis_server() as url:
            yield url
    elif name == "sqlite":
        with tempfile.TemporaryDirectory(prefix="resourcepool-bench-") as folder:
            yield migrated(f"sqlite:///{folder}/db.sqlite3")
    else:
        with SERVERS[name](max_connections=CONNECTIONS) as server:
            yield migrated(server.url)


def migrated(url: str, tree: Path = ROOT) -> str:
    """Make the tables of the checkout ``tree`` at ``url``; returns it."""
    environment = {**os.environ, "DATABASE_URL": url}
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=tree, env=environment, check=True)
    return url


def beside(url: str, tree: Path) -> str:
    """Return the URL of a second database on the same server, with the tables of the checkout ``tree``."""
    if not url.startswith("sqlite"):
        db = Driver(url)
        db.execute("CREATE DATABASE beside")
        db.close()
    return migrated(f"{url.rpartition('/')[0]}/beside", tree)

"""What the figures were measured on."""

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.driver import Driver


def machine() -> dict[str, str]:
    """Return processor, memory, kernel and the versions that matter."""
    return {
        "processors": f"{os.cpu_count()} x {_processor()}",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "django": version("django"),
        "mysqlclient": version("mysqlclient"),
    }


def server_version(url: str) -> str:
    """Return name and version of the database at ``url``."""
    kind = urlsplit(url).scheme
    if kind == "redis":
        import redis

        with redis.Redis.from_url(url) as client:
            return f"Redis {client.info('server')['redis_version']}"
    db = Driver(url)
    try:
        asked = {"sqlite": "SELECT sqlite_version()", "mysql": "SELECT VERSION()"}
        text = str(db.rows(asked.get(kind, "SHOW server_version"))[0][0])
    finally:
        db.close()
    of_mysql = "MariaDB" if "MariaDB" in text else "MySQL"
    name = {"sqlite": "SQLite", "mysql": of_mysql, "postgres": "PostgreSQL"}[kind]
    return f"{name} {re.split('[- ]', text)[0]}"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine()
    )

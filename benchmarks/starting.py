"""How long a fresh process takes until it has imported the package, and until it holds its first lease."""

import os
import statistics
import subprocess
import sys
from typing import Any

from benchmarks.places import ROOT

WITHOUT = "from django.conf import settings; settings.INSTALLED_APPS.remove('resourcepool');"
SCRIPT = """
import time; t = time.perf_counter()
import django; {without}
django.setup(); print(time.perf_counter() - t)
"""
FIRST = """
import time, django; django.setup()
from resourcepool.models import Proxy
from django.db import connection
t = time.perf_counter()
connection.ensure_connection()
print(time.perf_counter() - t)
t = time.perf_counter(); lease = Proxy.pool.acquire(); print(time.perf_counter() - t)
t = time.perf_counter(); lease.release(); print(time.perf_counter() - t)
t = time.perf_counter(); lease = Proxy.pool.acquire(); print(time.perf_counter() - t)
lease.release()
"""


def starting(url: str, times: int) -> dict[str, Any]:
    """Return medians over so many fresh processes, in seconds."""
    with_it = [_run(SCRIPT.format(without=""), url)[0] for _ in range(times)]
    without = [_run(SCRIPT.format(without=WITHOUT), url)[0] for _ in range(times)]
    first = [_run(FIRST, url) for _ in range(times)]
    connect, acquire, release, again = (statistics.median(values) for values in zip(*first, strict=True))
    return {
        "setup": statistics.median(with_it),
        "setup_without_us": statistics.median(without),
        "connect": connect,
        "first_acquire": acquire,
        "first_release": release,
        "second_acquire": again,
    }


def _run(script: str, url: str) -> list[float]:
    environment = {**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "project.settings"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return [float(line) for line in done.stdout.split()]

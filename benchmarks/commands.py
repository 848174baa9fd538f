"""How long the operator's commands take with 200,000 resources and 200,000 events: ``python -m benchmarks.commands``.

It fills the database of DATABASE_URL as ``benchmarks.pages`` does, which must be an empty one to be thrown away.
"""

import os
import statistics
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from django.core.management import call_command  # noqa: E402

from benchmarks.pages import fill  # noqa: E402
from resourcepool.models import Proxy  # noqa: E402
from tests.management.command_runner import run  # noqa: E402

TURNS = 5
REASON = ("--reason", "x", "--dry-run")
LINES = (
    ("status",),
    ("status", "proxy"),
    ("why", "17"),
    ("why", "h99999.example"),
    ("why", "nobody-at-all"),
    ("close", "--host", "host7", *REASON),
    ("drain", "proxy", "--all", *REASON),
    ("sweep",),
    ("export", "--events", "--since", "1h"),
    ("export",),
)


def measure(words: tuple[str, ...]) -> None:
    took = []
    for _ in range(TURNS):
        began = time.perf_counter()
        run(*words)
        took.append(time.perf_counter() - began)
    print(f"{' '.join(words):45} fastest {min(took):5.2f} s, median {statistics.median(took):5.2f}", flush=True)


if __name__ == "__main__":
    call_command("migrate", verbosity=0, run_syncdb=True)
    if not Proxy.objects.exists():
        fill()
    for line in LINES:
        measure(line)

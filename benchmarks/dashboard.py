"""How long the dashboard takes with 100,000 resources and 1,000,000 events: ``python -m benchmarks.dashboard``.

It fills the database of DATABASE_URL, which must be an empty one to be thrown away:

    python -m tests.servers mariadb          # prints a DATABASE_URL
    DATABASE_URL=... python -m benchmarks.dashboard
"""

import os
import statistics
import time
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth.models import Permission, User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402

from resourcepool.db.dialect import DbLater  # noqa: E402
from resourcepool.models import Event, Proxy, Sample  # noqa: E402
from resourcepool.signals import EventKind  # noqa: E402
from tests.app.models import Device  # noqa: E402

RESOURCES, EVENTS, BATCH, TURNS = 100_000, 1_000_000, 5_000, 15
PAGES = ("", "?span=15m", "?span=24h", "live/", "live/?span=24h")
KINDS = (
    EventKind.ACQUIRED,
    EventKind.RELEASED,
    EventKind.ACQUIRED,
    EventKind.RELEASED,
    EventKind.LOST,
    EventKind.CHECKED,
)


def fill() -> None:
    """Two pools: a large one, and one of 1,000 that is drawn cell by cell; events of ten hours, samples of a day."""
    many(Proxy, RESOURCES, lambda n: {"host": f"h{n}.example", "port": 3128, **busy(n)})
    many(Device, 1_000, lambda n: {"name": f"device {n}", **busy(n)})
    many(Event, EVENTS, event)
    for label in ("resourcepool.proxy", "testapp.device"):
        many(Sample, 1_440, lambda n, label=label: sample(label, n))
    with connection.cursor() as cursor:
        for model in (Proxy, Device, Event, Sample):
            cursor.execute(f"ANALYZE {'TABLE ' if connection.vendor == 'mysql' else ''}{model._meta.db_table}")


def many(model: Any, count: int, columns: Any) -> None:
    for start in range(0, count, BATCH):
        model._base_manager.bulk_create([model(**columns(n)) for n in range(start, min(count, start + BATCH))])
    print(f"{count:>9,} {model._meta.verbose_name_plural}", flush=True)


def busy(number: int) -> dict[str, Any]:
    if number % 3 == 0:
        return {}
    return {
        "busy_before": DbLater(3_600 + number % 60),
        "holder": f"host{number % 40}/{number}/main/1",
        "fence": 7,
    }


def event(number: int) -> dict[str, Any]:
    return {
        "at": DbLater((number - EVENTS) * 0.036),  # as in life: the newest has the highest key
        "what": KINDS[number % len(KINDS)],
        "pool": "resourcepool.proxy",
        "row": str(number % RESOURCES),
        "fence": number // RESOURCES,
        "holder": "host/1/main/1",
    }


def sample(label: str, number: int) -> dict[str, Any]:
    return {
        "pool": label,
        "minute": DbLater(-60.0 * (number + 1)),
        "free": 300,
        "leased": 600 + number % 90,
        "waiters": number % 7,
        "acquired": 900,
        "lost": number % 2,
    }


def reader() -> Client:
    """Somebody who may only look, and is no superuser: their permissions cost queries, too."""
    user = User.objects.create_user("reader", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=("view_proxy", "view_device")))
    client = Client()
    client.force_login(user)
    return client


def measure(client: Client, url: str) -> None:
    client.get(url)
    with CaptureQueriesContext(connection) as queries:
        assert client.get(url).status_code == 200
    asked = sorted(queries.captured_queries, key=lambda query: -float(query["time"]))
    took = []
    for _ in range(TURNS):
        began = time.perf_counter()
        answer = client.get(url)
        took.append((time.perf_counter() - began) * 1_000)
    print(
        f"{url:45} fastest {min(took):4.0f} ms, median {statistics.median(took):4.0f}, slowest {max(took):4.0f},"
        f" {len(asked)} queries, {len(answer.content) / 1_000:.0f} kB"
    )
    for query in asked[:3]:
        print(f"    {query['time']} s  {query['sql'][:110]}")


if __name__ == "__main__":
    settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, "testserver"]
    call_command("migrate", verbosity=0, run_syncdb=True)
    if not Proxy.objects.exists():
        fill()
    User.objects.filter(username="reader").delete()
    client = reader()
    for page in PAGES:
        measure(client, f"/admin/resourcepool/dashboard/{page}")

"""How long pages take with 200,000 proxies and 200,000 events, and their queries: ``python -m benchmarks.pages``.

It fills the database of DATABASE_URL, which must be an empty one to be thrown away:

    python -m tests.servers mariadb          # prints a DATABASE_URL
    DATABASE_URL=... python -m benchmarks.pages
"""

import datetime
import os
import statistics
import time
from typing import Any
from urllib.parse import urlencode

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
from resourcepool.models import Event, Proxy, Sample, Ticket  # noqa: E402
from resourcepool.signals import EventKind  # noqa: E402
from tests.app.models import Device  # noqa: E402

RESOURCES, EVENTS, BATCH, TURNS = 200_000, 200_000, 5_000, 15
OF_ONE, WAITERS = 20_000, 500  # events of the first proxy; waiters
EVERY = 0.18  # seconds between two events
SLOW = 0.05  # seconds; slower queries are printed
KINDS = (
    EventKind.ACQUIRED,
    EventKind.RELEASED,
    EventKind.ACQUIRED,
    EventKind.RELEASED,
    EventKind.LOST,
    EventKind.CHECKED,
)
OPERATOR = [f"{do}_{model}" for do in ("view", "operate") for model in ("proxy", "device")]
OPERATOR += ["change_proxy", "view_event", "view_job", "view_ticket"]


def fill() -> None:
    """A large pool, and one of 1,000 that is drawn cell by cell; events of ten hours, samples of a day, waiters."""
    many(Proxy, RESOURCES, proxy)
    many(Device, 1_000, lambda n: {"name": f"device {n}", **busy(n)})
    first = str(Proxy.objects.order_by("pk")[0].pk)
    many(Event, OF_ONE, lambda n: {**event(n), "row": first, "fence": n // 2})
    many(Event, EVENTS - OF_ONE, lambda n: event(OF_ONE + n))
    for label in ("resourcepool.proxy", "testapp.device"):
        many(Sample, 1_440, lambda n, label=label: sample(label, n))
    many(Ticket, WAITERS, waiter)
    with connection.cursor() as cursor:
        for model in (Proxy, Device, Event, Sample, Ticket):
            cursor.execute(f"ANALYZE {'TABLE ' if connection.vendor == 'mysql' else ''}{model._meta.db_table}")


def many(model: Any, count: int, columns: Any) -> None:
    for start in range(0, count, BATCH):
        model._base_manager.bulk_create([model(**columns(n)) for n in range(start, min(count, start + BATCH))])
    print(f"{count:>9,} {model._meta.verbose_name_plural}", flush=True)


def proxy(number: int) -> dict[str, Any]:
    tags = ("eu fast", "us", "asia", "rare" if number % 9_999 == 0 else "eu")[number % 4]
    country = ("DE", "US", "FR", "")[number % 4]
    return {"host": f"h{number}.example", "port": 3128, "tags": tags, "country": country, **busy(number)}


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
        "at": DbLater((number - EVENTS) * EVERY),  # as in life: the newest has the highest key
        "what": KINDS[number % len(KINDS)],
        "pool": "resourcepool.proxy",
        "row": str(number % RESOURCES),
        "fence": number // RESOURCES,
        "holder": "host/1/main/1",
        "actor": "ann" if number % 5_000 == 0 else "",
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


def waiter(number: int) -> dict[str, Any]:
    selector = ("{}", '{"country": "DE"}')[number % 2]
    asked = {"asked_at": DbLater(-number), "busy_before": DbLater(36_000), "holder": f"host/{number}/main/1"}
    return {"pool": "resourcepool.proxy", "selector": selector, **asked}


def client_of(*permissions: str) -> Client:
    """Return the client of a user with these permissions, who is no superuser: permissions cost queries, too."""
    User.objects.filter(username="reader").delete()
    user = User.objects.create_user("reader", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def pages() -> dict[str, str]:
    """Return {what it is: its path below ``/admin/resourcepool/``}."""
    first = Proxy.objects.order_by("pk")[0].pk
    now = datetime.datetime.now(datetime.UTC)
    five_hours_ago, later = (now - datetime.timedelta(hours=hours) for hours in (5, 4.9))
    lists = {
        "list of proxies": {},
        "its page 200": {"p": 200},
        "held": {"state": "held"},
        "free": {"state": "free"},
        "cooling down (none)": {"state": "cooling"},
        "with a rare tag": {"tag": "rare"},
        "on a host": {"on_host": "host39"},
        "sorted by the end of leases": {"o": 5},
        "search by number": {"q": 17},
        "search by address": {"q": "http://h99999.example:3128"},
        "search by a part of a holder": {"q": "host7"},
        "search that finds nothing": {"q": "no where at all"},
        "three filters and a search": {"state": "free", "tag": "fast", "in_country": "de", "q": "h9"},
    }
    activity = {
        "activity": {},
        "around a moment": {"around": five_hours_ago.isoformat()},
        "from, to": {"from": five_hours_ago.isoformat(), "to": later.isoformat()},
        "from, to, of a kind (none)": {"from": five_hours_ago.isoformat(), "what": "revoked"},
        "of an operator": {"who": "ann"},
        "of nobody": {"who": "nobody"},
        "of one row": {"q": first},
    }
    searches = ("17", "h99999.example", "host7/7/main/1", "ann", "no where at all")
    found = {f"dashboard, {span}": f"dashboard/?span={span}" for span in ("1h", "24h")}
    found |= {"its live part": "dashboard/live/"}
    found |= {name: f"proxy/?{urlencode(query)}" for name, query in lists.items()}
    found |= {f"search everywhere: {text}": f"dashboard/search/?{urlencode({'q': text})}" for text in searches}
    found |= {"who waits, and why": "dashboard/waiting/", "its page 20": "dashboard/waiting/?page=20"}
    found |= {name: f"event/?{urlencode(query)}" for name, query in activity.items()}
    found |= {"a proxy": f"proxy/{first + 1}/change/", "one with 20,000 events": f"proxy/{first}/change/"}
    return found | {"its activity": f"proxy/{first}/activity/", "revoke it": f"proxy/{first}/operate/revoke/"}


def measure(client: Client, url: str, name: str = "") -> None:
    """Print one line of a table in Markdown, and the slow queries below it."""
    client.get(url)
    with CaptureQueriesContext(connection) as queries:
        assert client.get(url).status_code == 200, url
    asked = sorted(queries.captured_queries, key=lambda query: -float(query["time"]))
    took = []
    for _ in range(TURNS):
        began = time.perf_counter()
        answer = client.get(url)
        took.append((time.perf_counter() - began) * 1_000)
    times = f"{min(took):.0f} | {statistics.median(took):.0f} | {max(took):.0f}"
    print(f"| {name or url} | {times} | {len(asked)} | {len(answer.content) / 1_000:.0f} kB |", flush=True)
    for query in asked[:3]:
        if float(query["time"]) >= SLOW:
            print(f"      {query['time']} s  {query['sql'][:200]}", flush=True)


if __name__ == "__main__":
    settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, "testserver"]
    call_command("migrate", verbosity=0, run_syncdb=True)
    if not Proxy.objects.exists():
        fill()
    client = client_of(*OPERATOR)
    for name, path in pages().items():
        measure(client, f"/admin/resourcepool/{path}", name)

"""How long the admin takes with 100,000 resources and 1,000,000 events: ``python -m benchmarks.admin``.

It fills the database of DATABASE_URL, which must be an empty one to be thrown away:

    python -m tests.servers mariadb          # prints a DATABASE_URL
    DATABASE_URL=... python -m benchmarks.admin
"""

import os
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth.models import Permission, User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402

from benchmarks.dashboard import EVENTS, RESOURCES, busy, event, many, measure  # noqa: E402
from resourcepool.models import Event, Proxy  # noqa: E402

MANY = 20_000  # events of one resource
LIST = "/admin/resourcepool/proxy/"
EVENT_LIST = "/admin/resourcepool/event/"

PAGES = (
    "",
    "?p=200",
    "?o=5",
    "?o=-3",
    "?state=held",
    "?state=free",
    "?state=cooling",
    "?tag=eu",
    "?tag=rare",
    "?held_by=host7/",
    "?on_host=host39",
    "?in_country=us",
    "?verdict=bad",
    "?q=17",
    "?q=http%3A%2F%2Fh99999.example%3A3128",
    "?q=h99999.example",
    "?q=host7",
    "?q=nowhere",
    "?q=no+where+at+all",
    "?state=free&tag=fast&in_country=de&q=h9",
)
EVENT_PAGES = (
    "",
    "?p=200",
    "?pool=resourcepool.proxy",
    "?pool=testapp.device",
    "?what=lost",
    "?what=revoked",
    "?past=hour",
    "?past=week",
    "?held_by=nobody",
    "?by=nobody",
    "?q=17",
    "?q=1",
    "?what=revoked&pool=testapp.device&past=week&by=x&held_by=y",
)


def fill() -> None:
    many(Proxy, RESOURCES, proxy)
    first = Proxy.objects.order_by("pk")[0]
    many(Event, MANY, lambda n: {**event(n), "row": str(first.pk), "fence": n // 2})
    many(Event, EVENTS - MANY, lambda n: event(MANY + n))
    with connection.cursor() as cursor:
        for model in (Proxy, Event):
            cursor.execute(f"ANALYZE {'TABLE ' if connection.vendor == 'mysql' else ''}{model._meta.db_table}")


def proxy(number: int) -> dict[str, Any]:
    tags = ("eu fast", "us", "asia", "rare" if number % 9_999 == 0 else "eu")[number % 4]
    country = ("de", "us", "fr", "")[number % 4].upper()
    return {"host": f"h{number}.example", "port": 3128, "tags": tags, "country": country, **busy(number)}


def reader() -> Client:
    """An operator, no superuser: their permissions cost queries, too."""
    user = User.objects.create_user("admin reader", is_staff=True)
    rights = ("view_proxy", "operate_proxy", "change_proxy", "view_event", "view_job", "view_ticket")
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    client = Client()
    client.force_login(user)
    return client


if __name__ == "__main__":
    settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, "testserver"]
    call_command("migrate", verbosity=0, run_syncdb=True)
    if not Proxy.objects.exists():
        fill()
    User.objects.filter(username="admin reader").delete()
    client = reader()
    for page in PAGES:
        measure(client, LIST + page)
    first = Proxy.objects.order_by("pk")[0].pk
    for page in (f"{first}/change/", f"{first}/activity/", f"{first + 1}/change/", f"{first}/operate/revoke/"):
        measure(client, LIST + page)
    for page in EVENT_PAGES:
        measure(client, EVENT_LIST + page)

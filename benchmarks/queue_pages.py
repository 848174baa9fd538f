"""How long the pages take with 10,000 queues on 100 servers and 1,000,000 moves: ``python -m benchmarks.queue_pages``.

It fills the database of DATABASE_URL, which must be an empty one to be thrown away:

    python -m tests.servers mariadb          # prints a DATABASE_URL
    DATABASE_URL=... python -m benchmarks.queue_pages
"""

import os
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth.models import Permission, User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.test import Client  # noqa: E402

from benchmarks.pages import many, measure  # noqa: E402
from resourcepool.db.dialect import DbLater, DbNow  # noqa: E402
from resourcepool.models import Move, QueueGroup, Server  # noqa: E402
from resourcepool.queues import administration  # noqa: E402

MOVES = 1_000_000  # that are older
QUEUE_GROUPS = (("mails", 10_000, 100), ("orders", 1_000, 20), ("jobs", 900, 20), ("more", 64, 8))
ALIVE = 36_000.0  # seconds
PAGES = (
    *("dashboard/", "dashboard/live/", "queuegroup/", "server/", "queue/", "queue/?queue_group=mails&p=150"),
    *("queue/?status=unowned", "queue/?status=asked", "queue/?q=mails-3", "queue/?q=77"),
    *("move/", "move/?queue_group=mails", "move/?queue_group=orders", "move/?what=requested", "move/?q=77"),
)


def fill() -> None:
    """Four queue groups of very different size; half of the servers of the largest drain."""
    many(Move, MOVES, move)
    for name, queues, servers in QUEUE_GROUPS:
        made = administration.create(name)
        many(Server, servers, lambda n, made=made: server(made, n))
        administration.add_queues(name, [str(number) for number in range(queues)])
    administration.drain("mails", *(f"mails-{number}" for number in range(50)))


def server(of: QueueGroup, number: int) -> dict[str, Any]:
    lease = {"busy_before": DbLater(ALIVE), "ttl": ALIVE, "fence": 1, "holder": f"host{number}/1/main/1"}
    return {
        "queue_group": of,
        "name": f"{of.name}-{number}",
        "registered_at": DbNow(),
        "idle_since": DbNow(),
        **lease,
    }


def move(number: int) -> dict[str, Any]:
    return {
        "queue_group": "mails",
        "generation": number - MOVES,
        "queue_pk": 0,
        "queue_id": str(number % 10_000),
        "what": Move.Action.HANDED_OVER,
        "from_server": "mails-1 #1",
        "to_server": "mails-2 #2",
        "fence": number,
        "reason": "its owner finished its work",
        "at": DbLater((number - MOVES) * 0.5 - 3_600),
    }


def reader() -> Client:
    """An operator, no superuser: their permissions cost queries, too."""
    user = User.objects.create_user("reader of queues", is_staff=True)
    models = ("queuegroup", "server", "queue", "move", "proxy")
    rights = [f"{action}_{model}" for action in ("view", "operate") for model in models]
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    client = Client()
    client.force_login(user)
    return client


if __name__ == "__main__":
    settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, "testserver"]
    call_command("migrate", verbosity=0, run_syncdb=True)
    if not QueueGroup.objects.exists():
        fill()
    User.objects.filter(username="reader of queues").delete()
    client = reader()
    for page in PAGES:
        measure(client, f"/admin/resourcepool/{page}")

"""Queries the database directly, past the relay: rows, and connected sessions."""

import time

from django.db import connection

from resourcepool.models import Proxy, Ticket
from tests.chaos.models import Page, Step
from tests.chaos.remains import Remains
from tests.concurrency.evidence import Log

COUNT = {
    "mysql": "SELECT COUNT(*) FROM information_schema.processlist WHERE user = SUBSTRING_INDEX(USER(), '@', 1)",
    "postgresql": "SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend'",
}


def make_rows(rows: int) -> None:
    Proxy.objects.bulk_create(Proxy(host=f"{number}.example", port=3128) for number in range(rows))
    Page.objects.bulk_create(Page(pk=pk) for pk in Proxy.objects.values_list("pk", flat=True))


def note_fences(log: Log) -> None:
    """Note the fence of every row as the server has it now."""
    began = time.monotonic()
    for pk, fence in Proxy.objects.values_list("pk", "fence"):
        log.tell("found", 0, at=began, pk=pk, fence=fence)
    connection.close()


def sessions() -> int:
    """Return how many sessions the server has, this one included."""
    with connection.cursor() as cursor:
        cursor.execute(COUNT[connection.vendor])
        return int(cursor.fetchone()[0])


def look_around(connected: int, patience: float) -> Remains:
    """Look once everybody has left: the server gets so many seconds to notice, and the last leases to run out."""
    deadline = time.monotonic() + patience
    while True:
        taken = list(Proxy.objects.held().values_list("pk", flat=True))
        waiting, after = Ticket.objects.held().count(), sessions()
        if not (taken or waiting or after > 1) or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    steps = list(Step.objects.order_by("pk").values_list("page", "before", "fence", "mark"))
    pages = dict(Page.objects.values_list("pk", "fence"))
    connection.close()
    return Remains(steps, pages, connected, after, taken, waiting)

"""What waiting costs the server while nothing comes free."""

import threading
import time
from typing import Any

from benchmarks import fleet
from benchmarks.ours import Ours

ROWS = 40


def statements_per_second(processes: int, threads: int, settle: float, seconds: float) -> dict[str, Any]:
    """Let ``processes`` times ``threads`` wait for rows that nobody releases; count what the server is asked.

    Args:
        settle: seconds until they look no more often than they must, before anything is counted.
    """
    from django.db import connection, connections

    from resourcepool.models import Proxy, Ticket

    Ours.prepare("", ROWS)
    Proxy.pool.acquire_many(ROWS, ttl=3_600)
    connections.close_all()
    counted: dict[str, Any] = {}

    def count() -> None:
        connection.ensure_connection()
        time.sleep(settle)
        counted["waiters"] = Ticket.objects.held().count()
        before = _questions(connection)
        time.sleep(seconds)
        counted["statements_per_second"] = (_questions(connection) - before) / seconds
        connections.close_all()

    counter = threading.Thread(target=count)

    def prepare(number: int) -> fleet.Work:
        def work(tally: fleet.Tally, until: float) -> None:
            wait = max(0.01, until - time.monotonic())
            everybody = [threading.Thread(target=_wait, args=(wait,)) for _ in range(threads)]
            for one in everybody:
                one.start()
            for one in everybody:
                one.join()

        return work

    counter.start()
    fleet.run(processes, prepare, settle + seconds)
    counter.join()
    return counted


def _wait(timeout: float) -> None:
    from django.db import connections

    from resourcepool.exceptions import AcquireTimeout
    from resourcepool.models import Proxy

    try:
        Proxy.pool.acquire(timeout=timeout)
    except AcquireTimeout:
        pass
    finally:
        connections.close_all()


def _questions(connection: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Questions'")
        return int(cursor.fetchone()[1])

"""What waiting costs the server while nothing comes free."""

import threading
import time
from typing import Any

from benchmarks import fleet
from benchmarks.ours import Ours

ROWS = 40
JOINING = 20.0  # seconds in which a thousand threads connect and take a ticket each


def statements_per_second(processes: int, threads: int, settle: float, seconds: float) -> dict[str, Any]:
    """Let ``processes`` times ``threads`` wait for rows that nobody releases; count what the server is asked.

    Args:
        settle: seconds from when all stand in line until they look no more often than they must; then it is counted.
    """
    from django.db import connection, connections

    from resourcepool.models import Proxy, Ticket

    Ours.prepare("", ROWS)
    held = Proxy.pool.acquire_many(ROWS, ttl=3_600)
    connections.close_all()
    counted: dict[str, Any] = {}

    def count() -> None:
        connection.ensure_connection()
        gives_up_at = time.monotonic() + JOINING
        while Ticket.objects.held().count() < processes * threads and time.monotonic() < gives_up_at:
            time.sleep(0.5)
        time.sleep(settle)
        counted["waiters"] = Ticket.objects.held().count()
        began, before = time.monotonic(), _questions(connection)
        time.sleep(seconds)
        asked = _questions(connection) - before
        counted["statements_per_second"] = asked / (time.monotonic() - began)
        for lease in held or ():  # so that nobody waits any longer
            lease.release()
        connections.close_all()

    counter = threading.Thread(target=count)

    def prepare(number: int) -> fleet.Work:
        def work(tally: fleet.Tally, until: float) -> None:
            wait = until - time.monotonic()
            if wait < settle + seconds:
                return  # to warm up there is nothing
            everybody = [threading.Thread(target=_wait, args=(wait,)) for _ in range(threads)]
            for one in everybody:
                one.start()
            for one in everybody:
                one.join()

        return work

    counter.start()
    fleet.run(processes, prepare, JOINING + settle + seconds)
    counter.join()
    return counted


def _wait(timeout: float) -> None:
    from django.db import connections

    from resourcepool.exceptions import AcquireTimeout
    from resourcepool.models import Proxy

    try:
        lease = Proxy.pool.acquire(timeout=timeout)
        if lease is not None:  # it has been counted
            lease.release()
    except AcquireTimeout:
        pass
    finally:
        connections.close_all()


def _questions(connection: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Questions'")
        return int(cursor.fetchone()[1])

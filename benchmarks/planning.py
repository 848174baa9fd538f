"""What it costs to plan 10,000 queues on 100 servers: seconds and statements."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from django.db import connection

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.models import Move, Queue, QueueGroup, Server
from resourcepool.queues import reassignment
from resourcepool.queues.administration import create

QUEUES, SERVERS = 10_000, 100
NAME = "planned"
TRANSACTION = 2  # statements that begin and end it
MANY_MOVES = 100_000  # of another queue group: history that is in the way


def measure() -> None:
    """Print a line for the first assignment, a join, a death, and a hand-over of everything asked for."""
    queue_group = create(NAME, [str(number) for number in range(QUEUES)])
    fill(MANY_MOVES)
    rows = [_server(queue_group, number) for number in range(SERVERS)]
    Server.objects.bulk_create(rows)
    analyze()
    print(f"{QUEUES:,} queues, {SERVERS} servers, {MANY_MOVES:,} old moves")
    print(f"  {'':22}{'seconds':>8}{'statements':>12}{'moved':>8}")
    _one("first assignment", lambda: _plan(queue_group))
    _one("a server joins", lambda: _plan(queue_group, first=lambda _: _server(queue_group, SERVERS).save()))
    _one("a hand-over", lambda: _hand_over(queue_group))
    _one("a server dies", lambda: _plan(queue_group, first=lambda _: _die(queue_group)))
    _one("nothing has changed", lambda: _plan(queue_group, if_due=True))


def fill(moves: int) -> None:
    """Make history."""
    for start in range(0, moves, 5_000):
        Move.objects.bulk_create(
            Move(queue_group="old", generation=n, queue_pk=n % QUEUES, what="assigned", fence=n, at=DbNow())
            for n in range(start, min(moves, start + 5_000))
        )


def analyze() -> None:
    with connection.cursor() as cursor:
        for model in (QueueGroup, Server, Queue, Move):
            cursor.execute(f"ANALYZE {'TABLE ' if connection.vendor == 'mysql' else ''}{model._meta.db_table}")
            if connection.vendor == "mysql":
                cursor.fetchall()


def _server(queue_group: QueueGroup, number: int) -> Server:
    row = {"queue_group": queue_group, "name": f"server {number}", "ttl": 600, "fence": 1, "holder": "bench"}
    moments = {"busy_before": DbLater(600), "registered_at": DbNow(), "idle_since": DbNow()}
    return Server(**row, **moments)  # type: ignore[arg-type]


def _plan(queue_group: QueueGroup, **how: object) -> reassignment.Outcome:
    return reassignment.reassign("default", queue_group.pk, "bench", **how)  # type: ignore[arg-type]


def _die(queue_group: QueueGroup) -> None:
    first = Server.objects.filter(queue_group=queue_group).order_by("pk").values_list("pk", flat=True)[0]
    Server.objects.filter(pk=first).update(busy_before=DbLater(-1))


def _hand_over(queue_group: QueueGroup) -> reassignment.Outcome:
    """Have the one that gives most hand over what it was asked for: each giver does so in a transaction of its own."""
    asked = Queue.objects.filter(queue_group=queue_group).exclude(req_server=None)
    giver = Counter(asked.values_list("cur_server", flat=True)).most_common(1)[0][0]
    given = list(asked.filter(cur_server=giver).values_list("pk", flat=True))
    return reassignment.release("default", queue_group.pk, "bench", giver, given, [])


def _one(name: str, do: Callable[[], reassignment.Outcome]) -> None:
    sent = []

    def count(execute: Any, sql: str, *rest: Any) -> Any:
        sent.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(count):
        began = time.perf_counter()
        outcome = do()
        took = time.perf_counter() - began
    print(f"  {name:22}{took:8.2f}{len(sent) + TRANSACTION:12}{len(outcome.changes):8,}", flush=True)

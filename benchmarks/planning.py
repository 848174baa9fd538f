"""What it costs to plan 10,000 queues on 100 servers: seconds and statements."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from django.db import connection

from resourcepool.dialect import DbLater, DbNow
from resourcepool.models import Move, Queue, Server, TaskType
from resourcepool.queues import moving
from resourcepool.queues.changing import create

QUEUES, SERVERS = 10_000, 100
NAME = "planned"
TRANSACTION = 2  # statements that begin and end it
MANY_MOVES = 100_000  # of another task type: history that is in the way


def measure() -> None:
    """Print a line for the first assignment, a join, a death, and a hand-over of everything asked for."""
    task_type = create(NAME, [str(number) for number in range(QUEUES)])
    fill(MANY_MOVES)
    rows = [_server(task_type, number) for number in range(SERVERS)]
    Server.objects.bulk_create(rows)
    analyze()
    print(f"{QUEUES:,} queues, {SERVERS} servers, {MANY_MOVES:,} old moves")
    print(f"  {'':22}{'seconds':>8}{'statements':>12}{'moved':>8}")
    _one("first assignment", lambda: _plan(task_type))
    _one("a server joins", lambda: _plan(task_type, first=lambda _: _server(task_type, SERVERS).save()))
    _one("a hand-over", lambda: _hand_over(task_type))
    _one("a server dies", lambda: _plan(task_type, first=lambda _: _die(task_type)))
    _one("nothing has changed", lambda: _plan(task_type, if_due=True))


def fill(moves: int) -> None:
    """Make history."""
    for start in range(0, moves, 5_000):
        Move.objects.bulk_create(
            Move(task_type="old", generation=n, queue_pk=n % QUEUES, what="assigned", fence=n, at=DbNow())
            for n in range(start, min(moves, start + 5_000))
        )


def analyze() -> None:
    with connection.cursor() as cursor:
        for model in (TaskType, Server, Queue, Move):
            cursor.execute(f"ANALYZE {'TABLE ' if connection.vendor == 'mysql' else ''}{model._meta.db_table}")
            if connection.vendor == "mysql":
                cursor.fetchall()


def _server(task_type: TaskType, number: int) -> Server:
    row = {"task_type": task_type, "name": f"server {number}", "ttl": 600, "fence": 1, "holder": "bench"}
    moments = {"busy_before": DbLater(600), "registered_at": DbNow(), "idle_since": DbNow()}
    return Server(**row, **moments)  # type: ignore[arg-type]


def _plan(task_type: TaskType, **how: object) -> moving.Outcome:
    return moving.reassign("default", task_type.pk, "bench", **how)  # type: ignore[arg-type]


def _die(task_type: TaskType) -> None:
    first = Server.objects.filter(task_type=task_type).order_by("pk").values_list("pk", flat=True)[0]
    Server.objects.filter(pk=first).update(busy_before=DbLater(-1))


def _hand_over(task_type: TaskType) -> moving.Outcome:
    """Have the one that gives most hand over what it was asked for: each giver does so in a transaction of its own."""
    asked = Queue.objects.filter(task_type=task_type).exclude(req_server=None)
    giver = Counter(asked.values_list("cur_server", flat=True)).most_common(1)[0][0]
    given = list(asked.filter(cur_server=giver).values_list("pk", flat=True))
    return moving.release("default", task_type.pk, "bench", giver, given, [])


def _one(name: str, do: Callable[[], moving.Outcome]) -> None:
    sent = []

    def count(execute: Any, sql: str, *rest: Any) -> Any:
        sent.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(count):
        began = time.perf_counter()
        outcome = do()
        took = time.perf_counter() - began
    print(f"  {name:22}{took:8.2f}{len(sent) + TRANSACTION:12}{len(outcome.changes):8,}", flush=True)

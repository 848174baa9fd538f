"""However many tasks a dispenser has, every statement finds its rows by the index that is meant for it."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from resourcepool.db.inspection import inspector
from resourcepool.models import Bucket, DispenserTask
from resourcepool.safety.doctor import capture_statement
from resourcepool.taskqueue import TaskDispenser
from resourcepool.taskqueue.dispenser import rebuild, statements
from resourcepool.taskqueue.dispenser.bucket_lifecycle import WorkerBucket
from tests.taskqueue.dispenser.dispensers import dispenser

MANY, WORKERS = 5_000, 50
TABLE = DispenserTask._meta.db_table
BY_KEY = {"PRIMARY", f"{TABLE}_pkey"}
ORDER, KEYS = {"resourcepool_dispensed_order"}, {"resourcepool_dispensed_key"}
OF_BUCKET = {f"{TABLE}_bucket_id_0a4de4e8"}


def _many() -> None:
    """Finish half of the tasks; of the other half, workers have some, and the rest is ready."""
    d = dispenser(dict.fromkeys(range(MANY), 1.0))
    TaskDispenser("another").add_many(dict.fromkeys(range(MANY // 4), 1.0))
    tasks = DispenserTask.objects.filter(dispenser_id="reviews")
    middle = tasks.order_by("pk").values_list("pk", flat=True)[MANY // 2]
    tasks.filter(pk__lt=middle).update(state="done", finished_at=d.now())
    for number in range(WORKERS):
        WorkerBucket("default", "reviews", f"worker {number}", 600).fill(20)
    with connection.cursor() as cursor:
        for table in (TABLE, Bucket._meta.db_table):
            cursor.execute(f"ANALYZE {'TABLE ' if connection.vendor == 'mysql' else ''}{table}")


@pytest.mark.only("mysql", "postgresql")
def test_every_statement_finds_its_tasks_by_index() -> None:
    _many()
    pk = Bucket.objects.get(name="worker 3").pk
    rows = statements.tasks_in_bucket(connection, pk)
    fences, by_key = {row.pk: row.fence for row in rows}, {row.key: row.fence for row in rows}
    assert len(rows) == 20
    sends: dict[str, tuple[Callable[[], Any], set[str]]] = {
        "held": (lambda: statements.tasks_in_bucket(connection, pk), OF_BUCKET),
        "first": (lambda: statements.lock_first_ready(connection, "reviews", 20), ORDER),
        "are there more": (lambda: WorkerBucket("default", "reviews", "", 600)._are_there_more(), ORDER),
        "take": (lambda: statements.take(connection, pk, rows), BY_KEY),
        "retire": (lambda: statements.retire(connection, fences), BY_KEY),
        "rescore": (lambda: statements.rescore(connection, dict.fromkeys(fences, 2.0)), BY_KEY),
        "give back": (lambda: statements.give_back(connection, pk, rows), OF_BUCKET | BY_KEY),
        "done": (lambda: statements.done(connection, "reviews", "worker 3", by_key), OF_BUCKET | KEYS),
        "known": (lambda: rebuild.read_known(connection, "reviews", dict.fromkeys(by_key, 1.0)), KEYS),
        "check": (lambda: TaskDispenser("reviews").check_tasks("worker 3", []), OF_BUCKET),
    }
    found = {}
    for name, (send, _) in sends.items():
        plan = inspector(connection).explain(*capture_statement(connection, send))
        found[name] = {step.index for step in plan.steps if step.table == TABLE}
    assert {name: used for name, used in found.items() if not used or not used <= sends[name][1]} == {}

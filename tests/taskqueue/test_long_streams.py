"""However long a stream is, its consumer and its status find the first tasks of it by index, and read no others."""

from collections.abc import Callable

import pytest
from django.db import connection

from resourcepool.db.dialect import DbNow
from resourcepool.db.inspection import inspector
from resourcepool.models import Task
from resourcepool.safety.doctor import capture_statement, judge_plan
from resourcepool.status.work.streams import STREAMS
from resourcepool.taskqueue import attempts, submit_many
from resourcepool.taskqueue.submission import NewTask
from tests.taskqueue.consumers import stream

MANY = 1_500  # more than are big: see resourcepool/safety/doctor.py
TABLE = Task._meta.db_table


@pytest.fixture(autouse=True)
def _long() -> None:
    stream()
    submit_many("oracle", (NewTask("note", key=f"done {number}") for number in range(MANY)))
    Task.objects.update(state=Task.State.DONE, finished_at=DbNow())
    submit_many("oracle", (NewTask("note", key=str(number), lane=str(number % 9)) for number in range(MANY)))
    with connection.cursor() as cursor:
        if connection.vendor != "sqlite":  # which chooses well without
            cursor.execute(f"ANALYZE {'TABLE ' if connection.vendor == 'mysql' else ''}{TABLE}")


SENDS: dict[str, Callable[[], object]] = {
    "the next task": lambda: attempts.first_tasks("default", "oracle", set(), 1),
    "the next task of each lane": lambda: attempts.first_tasks("default", "oracle", {"1", "2"}, 128),
    "the first task of a status": lambda: STREAMS.get("oracle"),
    "tasks that are counted": lambda: list(
        Task.objects.filter(stream_id="oracle").unfinished_in_order().values_list("state")[:100]
    ),
}


def test_the_first_unfinished_tasks_are_found_by_index_and_nothing_is_sorted() -> None:
    for name, send in SENDS.items():
        plan = inspector(connection).explain(*capture_statement(connection, send))
        assert judge_plan(plan, {TABLE}) is None, name
        used = {step.index for step in plan.steps if step.table in (TABLE, "U0")}
        assert used == {"resourcepool_task_in_order"}, name

"""However many tasks and timers there are, the first of them are found by index, and no others are read."""

from collections.abc import Callable

import pytest
from django.db import connection

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.db.inspection import inspector
from resourcepool.models import Task, Timer
from resourcepool.safety.doctor import capture_statement, judge_plan
from resourcepool.status.work.streams import STREAMS
from resourcepool.status.work.timers import BY_INDEX, TOPICS
from resourcepool.taskqueue import NewTask, attempts, submit_many
from resourcepool.taskqueue.timers import runner as due_timers
from tests.taskqueue.consumers import stream
from tests.taskqueue.timers.runners import topic

MANY = 1_500  # more than are big: see resourcepool/safety/doctor.py


def many_tasks() -> None:
    stream()
    submit_many("oracle", (NewTask("note", key=f"done {number}") for number in range(MANY)))
    Task.objects.update(state=Task.State.DONE, finished_at=DbNow())
    submit_many("oracle", (NewTask("note", key=str(number), lane=str(number % 9)) for number in range(MANY)))


def many_timers() -> None:
    topic()
    for over in (None, DbLater(-60)):
        moments = {"due_at": DbLater(60), "busy_before": DbLater(60), "finished_at": over}
        rows = (Timer(topic_id="t", name=f"{over is None} {number}", **moments) for number in range(MANY))
        Timer.objects.bulk_create(rows)


OF_TASKS: dict[str, Callable[[], object]] = {
    "the next task": lambda: attempts.first_tasks("default", "oracle", set(), 1),
    "the next task of each lane": lambda: attempts.first_tasks("default", "oracle", {"1", "2"}, 128),
    "the first task of a status": lambda: STREAMS.get("oracle"),
    "tasks that are counted": lambda: list(
        Task.objects.filter(stream_id="oracle").unfinished_in_order().values_list("state")[:100]
    ),
}
OF_TIMERS: dict[str, Callable[[], object]] = {
    "a node's look": lambda: due_timers.read_due("default", ["t"], 65, 100),
    "the first timer of a status": lambda: TOPICS.get("t"),
    "timers that are counted": lambda: list(
        Timer.objects.filter(topic_id="t").unfinished().order_by(*BY_INDEX).values_list("state")[:100]
    ),
}


@pytest.mark.parametrize(
    ("model", "make", "sends", "index"),
    [
        (Task, many_tasks, OF_TASKS, "resourcepool_task_in_order"),
        (Timer, many_timers, OF_TIMERS, "resourcepool_timer_due"),
    ],
)
def test_the_first_unfinished_ones_are_found_by_index_and_nothing_is_sorted(
    model: type[Task | Timer], make: Callable[[], None], sends: dict[str, Callable[[], object]], index: str
) -> None:
    make()
    table = model._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor != "sqlite":  # which chooses well without
            cursor.execute(f"ANALYZE {'TABLE ' if connection.vendor == 'mysql' else ''}{table}")
    for name, send in sends.items():
        plan = inspector(connection).explain(*capture_statement(connection, send))
        assert judge_plan(plan, {table}) is None, name
        assert {step.index for step in plan.steps if step.table in (table, "U0")} == {index}, name

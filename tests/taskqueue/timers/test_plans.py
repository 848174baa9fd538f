"""However many timers a topic has, its nodes and its status find the first of them by index, and sort nothing."""

from collections.abc import Callable

import pytest
from django.db import connection

from resourcepool.db.dialect import DbLater
from resourcepool.db.inspection import inspector
from resourcepool.models import Timer
from resourcepool.safety.doctor import capture_statement, judge_plan
from resourcepool.status.work.timers import BY_INDEX, TOPICS
from resourcepool.taskqueue.timers import runner as due_timers
from tests.taskqueue.timers.runners import topic

MANY = 1_500  # more than are big: see resourcepool/safety/doctor.py
TABLE = Timer._meta.db_table


@pytest.fixture(autouse=True)
def _many() -> None:
    topic()
    for over in (None, DbLater(-60)):
        moments = {"due_at": DbLater(60), "busy_before": DbLater(60), "finished_at": over}
        rows = (Timer(topic_id="t", name=f"{over is None} {number}", **moments) for number in range(MANY))
        Timer.objects.bulk_create(rows)
    with connection.cursor() as cursor:
        if connection.vendor != "sqlite":  # which chooses well without
            cursor.execute(f"ANALYZE {'TABLE ' if connection.vendor == 'mysql' else ''}{TABLE}")


SENDS: dict[str, Callable[[], object]] = {
    "a node's look": lambda: due_timers.read_due("default", ["t"], 65, 100),
    "the first timer of a status": lambda: TOPICS.get("t"),
    "timers that are counted": lambda: list(
        Timer.objects.filter(topic_id="t").unfinished().order_by(*BY_INDEX).values_list("state")[:100]
    ),
}


def test_the_first_unfinished_timers_are_found_by_index_and_nothing_is_sorted() -> None:
    for name, send in SENDS.items():
        plan = inspector(connection).explain(*capture_statement(connection, send))
        assert judge_plan(plan, {TABLE}) is None, name
        used = {step.index for step in plan.steps if step.table in (TABLE, "U0")}
        assert used == {"resourcepool_timer_due"}, name

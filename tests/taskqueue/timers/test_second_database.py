"""Timers whose rows a router sends to another database: nothing of them is looked for in the default one."""

from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from resourcepool.contrib.celery_timers import apply_async_at, tasks as handover
from resourcepool.models import Timer
from resourcepool.taskqueue import timers
from tests.aliases import alias
from tests.taskqueue.timers.runners import due


class Replica:
    """A router that reads elsewhere than it writes."""

    def db_for_read(self, model: type, **hints: Any) -> str:
        return "replica"

    def db_for_write(self, model: type, **hints: Any) -> str:
        return "default"


def live(runner: timers.TimerRunner) -> None:
    """Set timers, change them, and have them handled, in this thread."""
    apply_async_at("some.task", after=60, name="sent")
    timers.schedule("each", topic="t", every=60)
    timers.reschedule("each", after=30)
    timers.cancel("each")
    Timer.objects.filter(name="sent").cancel()
    due("last")
    runner.run()


@pytest.fixture
def runner() -> timers.TimerRunner:
    made = timers.TimerRunner()

    @timers.on("t")
    def last(one: Any) -> None:
        with transaction.atomic(using=one.lease.using), one.guard():
            pass
        made.stop()

    return made


def test_they_are_all_in_the_other_database(runner: timers.TimerRunner) -> None:
    with alias("second"):
        with CaptureQueriesContext(connection) as in_the_default_one:
            live(runner)
            assert handover.handle(0, 0) is None
        found = dict(Timer.objects.using("second").values_list("name", "state"))
    assert found == {"sent": "cancelled", "each": "cancelled", "last": "done"}
    assert in_the_default_one.captured_queries == []


def test_a_replica_is_not_asked_and_no_transaction_is_open_in_it(
    runner: timers.TimerRunner, settings: Any
) -> None:
    with alias("replica", leased=False):
        settings.DATABASE_ROUTERS = [Replica()]
        with CaptureQueriesContext(connections["replica"]) as in_the_replica:
            live(runner)
        settings.DATABASE_ROUTERS = []
    assert in_the_replica.captured_queries == []
    assert Timer.objects.get(name="last").state == "done"

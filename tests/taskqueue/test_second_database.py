"""Dispensers and timers whose rows a router sends to another database: the default one is not asked."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext, override_settings

from resourcepool.contrib.celery_timers import apply_async_at, tasks as handover
from resourcepool.contrib.dispenser_parts import TaskBucket, TaskPool, TaskRouter
from resourcepool.models import Bucket, Dispenser, DispenserTask, Timer
from resourcepool.taskqueue import Done, TaskDispenser, timers
from tests.aliases import alias
from tests.app.rows import expire
from tests.taskqueue.timers.runners import due


class Second:
    """A router that has all in another database, but reads from a replica if there is one."""

    def __init__(self, writes: str, reads: str) -> None:
        self.writes, self.reads = writes, reads

    def db_for_read(self, model: type, **hints: Any) -> str:
        return self.reads

    def db_for_write(self, model: type, **hints: Any) -> str:
        return self.writes


def use_a_dispenser(using: str) -> None:
    """Call everything that a dispenser, its parts, and operators can do."""
    d, pool, router = TaskDispenser("r"), TaskPool("r"), TaskRouter("r")
    d.add_many({number: number for number in range(20)})
    TaskPool("r").add("abc", -1)
    assert d.recreate_task_pool({number: -number for number in range(20)}, as_of=d.now()).changed == 19
    told = d.assign_tasks(5, "alice")
    assert [one.key for one in told] == ["19", "18", "17", "16", "15"]
    assert d.check_tasks("alice", told)
    assert d.touch("alice")
    with transaction.atomic(using=using):
        assert set(d.tasks_done("alice", told[:2]).values()) == {Done.DONE}
    assert set(d.tasks_done("alice", [*told[:3], (99, 1)]).values()) == {Done.DONE, Done.UNKNOWN}
    assert d.give_back("alice", told[3:4]) == 1
    assert d.recreate_task_pool(dict.fromkeys(range(20), 1), as_of=d.now()).assigned == 1
    expire(Bucket.objects.using(using).get(name="alice"))
    assert len(d.assign_tasks(2, "bob")) == 2
    assert d.assign_tasks(1, "bob")
    assert d.give_back("bob") == 1
    bucket = TaskBucket(router.add("carol"), pool="r")
    assert len(bucket.add([1, 2, 3])) == 3
    assert bucket.peek_all() == ["1", "2", "3"]
    assert (bucket.pop(), bucket.expire(50), bucket.clear()) == ("1", True, 2)
    assert router.get("carol") in router.buckets()
    d.assign_tasks(2, "dave")
    assert Bucket.objects.filter(name="dave").revoke("eve") == 1
    assert DispenserTask.objects.filter(state="ready", score=1).discard("eve", "why") > 0
    assert DispenserTask.objects.retry("eve") > 0
    assert Dispenser.objects.pause("eve") == Dispenser.objects.resume("eve") == 1
    assert router.clear() > 0
    assert pool.assign(1)
    assert d.size() > 0
    assert d.clear() > 0


def routed(to: str, router: Second) -> AbstractContextManager[object]:
    """Have ``router`` decide, beside another database; that one goes last, for it changes settings, too."""
    stack = ExitStack()
    stack.enter_context(alias(to, leased=False))
    stack.enter_context(override_settings(DATABASE_ROUTERS=[router]))
    return stack


def use_timers(using: str) -> None:
    """Set timers, change them, and have them handled, in this thread."""
    apply_async_at("some.task", after=60, name="sent")
    timers.schedule("each", topic="t", every=60)
    timers.reschedule("each", after=30)
    timers.cancel("each")
    Timer.objects.using(using).filter(name="sent").cancel()
    runner = timers.TimerRunner()

    @timers.on("t")
    def last(one: Any) -> None:
        with transaction.atomic(using=one.lease.using), one.guard():
            pass
        runner.stop()

    due("last")
    runner.run()
    found = dict(Timer.objects.using(using).values_list("name", "state"))
    assert found == {"sent": "cancelled", "each": "cancelled", "last": "done"}
    assert handover.handle(0, 0) is None


every_use = pytest.mark.parametrize("use", [use_a_dispenser, use_timers])


@every_use
def test_all_of_it_is_in_the_other_database(use: Callable[[str], None]) -> None:
    with routed("second", Second("second", "second")), CaptureQueriesContext(connection) as in_the_default_one:
        use("second")
    assert in_the_default_one.captured_queries == []


@every_use
def test_a_replica_is_not_asked(use: Callable[[str], None]) -> None:
    with (
        routed("replica", Second("default", "replica")),
        CaptureQueriesContext(connections["replica"]) as in_the_replica,
    ):
        use("default")
    assert [one["sql"] for one in in_the_replica.captured_queries] == []


@pytest.mark.only("mysql", "postgresql")
def test_an_open_transaction_on_another_database_is_no_obstacle_to_an_assignment() -> None:
    with routed("second", Second("second", "second")):
        d = TaskDispenser("r")
        d.add("a", 1)
        with transaction.atomic(using="default"):
            (told,) = d.assign_tasks(1, "alice")
            transaction.set_rollback(True, using="default")
        assert d.tasks_done("alice", [told]) == {"a": Done.DONE}

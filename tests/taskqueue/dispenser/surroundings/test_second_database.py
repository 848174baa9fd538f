"""A dispenser whose rows a router sends to another database: nothing of it is looked for in the default one."""

from contextlib import AbstractContextManager, ExitStack
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext, override_settings

from resourcepool.contrib.dispenser_parts import TaskBucket, TaskPool, TaskRouter
from resourcepool.models import Bucket, Dispenser, DispenserTask
from resourcepool.taskqueue import Done, TaskDispenser
from tests.aliases import alias
from tests.app.rows import expire


class Second:
    """A router that has all in another database, but reads from a replica if there is one."""

    def __init__(self, writes: str, reads: str) -> None:
        self.writes, self.reads = writes, reads

    def db_for_read(self, model: type, **hints: Any) -> str:
        return self.reads

    def db_for_write(self, model: type, **hints: Any) -> str:
        return self.writes


def live(using: str) -> None:
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
    assert router.clear() == 0
    assert pool.assign(1)
    assert d.size() > 0
    assert d.clear() > 0


def routed(to: str, router: Second) -> AbstractContextManager[object]:
    """Have ``router`` decide, beside another database; that one goes last, for it changes settings, too."""
    stack = ExitStack()
    stack.enter_context(alias(to, leased=False))
    stack.enter_context(override_settings(DATABASE_ROUTERS=[router]))
    return stack


def test_all_of_it_is_in_the_other_database() -> None:
    with routed("second", Second("second", "second")), CaptureQueriesContext(connection) as in_the_default_one:
        live("second")
    assert in_the_default_one.captured_queries == []


def test_a_replica_is_not_asked() -> None:
    with (
        routed("replica", Second("default", "replica")),
        CaptureQueriesContext(connections["replica"]) as in_the_replica,
    ):
        live("default")
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

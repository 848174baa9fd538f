"""With a router that reads from a replica, decisions read from the primary."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings

from resourcepool.db.dialect import DbNow
from resourcepool.exceptions import LeaseLost
from resourcepool.models import Dispenser, Job, Proxy, Stream, Task, Topic
from resourcepool.signals import EventKind, RowEvent
from resourcepool.status.internals import jobs
from resourcepool.status.work.dispensers import DISPENSERS
from resourcepool.status.work.pages import page_of_work
from resourcepool.status.work.streams import STREAMS
from resourcepool.status.work.timers import TOPICS
from resourcepool.taskqueue import submit
from tests.aliases import alias
from tests.app.rows import granted, new, several
from tests.resources.sent_signals import events

__all__ = ["events"]


class ReadsElsewhere:
    """Sends every read to a replica that lags so far that it has no tables yet."""

    def db_for_read(self, model: type, **hints: Any) -> str:
        return "replica"

    def db_for_write(self, model: type, **hints: Any) -> str:
        return "default"


@pytest.fixture(autouse=True)
def _a_lagging_replica(tmp_path: Path) -> Iterator[None]:
    name = {"mysql": "mysql", "postgresql": "postgres", "sqlite": str(tmp_path / "db")}[connection.vendor]
    with alias("replica", leased=False, NAME=name), override_settings(DATABASE_ROUTERS=[ReadsElsewhere()]):
        yield


def left() -> int:
    return int(Proxy.objects.using("default").count())


def test_a_lease_lives_on_the_writer() -> None:
    new(Proxy, host="a.example")
    with Proxy.pool.lease(timeout=5) as lease:
        assert lease.resource.host == "a.example"
        lease.renew()
    with Proxy.pool.lease(timeout=5, strategy="random") as lease:
        assert Proxy.pool.acquire(wait=False) is None
        lease.quarantine("broken")


def test_rows_are_deleted_on_the_writer_unless_they_are_held() -> None:
    held, *_ = several(Proxy, 3)
    granted(held)
    Proxy.objects.all().delete()
    assert list(Proxy.objects.using("default").values_list("pk", "status")) == [(held.pk, "retired")]


def test_a_row_that_was_read_from_a_replica_is_deleted_on_the_writer() -> None:
    row = new(Proxy)
    row._state.db = "replica"
    row.delete()
    assert left() == 0


def test_operators_decide_on_the_writer_also_when_somebody_listens(events: list[RowEvent]) -> None:
    """One event per changed row."""
    new(Proxy)
    assert EventKind.DRAINED.has_listeners(Proxy)
    lease: Any = Proxy.pool.acquire()
    assert Proxy.objects.all().revoke("stuck") == 1
    with pytest.raises(LeaseLost):
        lease.renew()
    assert Proxy.objects.all().drain("maintenance") == 1
    assert Proxy.pool.acquire(wait=False) is None
    assert Proxy.objects.all().return_to_service() >= 1
    with Proxy.pool.lease(timeout=5):
        pass


def test_commands_and_pages_find_streams_dispensers_and_topics_on_the_writer() -> None:
    Stream.objects.create(name="s1")
    submit("s1", "t", key="k")
    assert [one.name for one in STREAMS.named("s1")] == ["s1"]
    assert [task.key for task in page_of_work(Task, "s1").work] == ["k"]
    for model, places in ((Dispenser, DISPENSERS), (Topic, TOPICS)):
        model.objects.create(name="one")
        assert places.get("one")


def test_the_state_of_the_jobs_is_read_on_the_writer() -> None:
    Job.objects.create(name="sweep", done_at=DbNow())
    assert list(jobs()) == ["sweep"]

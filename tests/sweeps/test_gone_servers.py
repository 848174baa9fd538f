"""The row of a crashed queue server is removed, even if there is no other queue server."""

from typing import Any

import pytest

from resourcepool.db.dialect import DbLater
from resourcepool.models import Move, Queue, QueueGroup, Server
from resourcepool.sweeps.pruning import SERVER_GONE_AFTER, remove_gone_servers
from resourcepool.sweeps.sweep import prune
from tests.admin.queues.scene import owners, queue_group, server
from tests.locking import locked

pytestmark = pytest.mark.usefixtures("transactional_db")


@pytest.fixture
def orders() -> QueueGroup:
    """A queue group with four queues, whose only queue server has had no heartbeat for an hour."""
    made = queue_group()
    server(made, "A")
    dead_for(SERVER_GONE_AFTER + 60)
    return made


def dead_for(seconds: float, **which: Any) -> None:
    Server.objects.filter(**which).update(busy_before=DbLater(-seconds))


def test_a_job_removes_it_and_unassigns_its_queues(orders: QueueGroup) -> None:
    before = Queue.objects.get(queue_id="q0").fence
    assert prune() is not None
    assert not Server.objects.exists()
    assert owners(orders) == [""] * 4
    assert Queue.objects.get(queue_id="q0").fence > before  # so actions under the old fence are refused
    assert Move.objects.filter(what=Move.Action.UNASSIGNED).count() == 4
    assert remove_gone_servers() == 0


def test_a_server_that_may_return_keeps_its_queues(orders: QueueGroup) -> None:
    dead_for(SERVER_GONE_AFTER - 60)
    assert remove_gone_servers() == 0
    assert owners(orders) == ["A"] * 4


def test_a_recently_live_server_takes_over_instead(orders: QueueGroup) -> None:
    Server.objects.create(
        queue_group=orders, name="B", ttl=60, busy_before=DbLater(-5), registered_at=DbLater(-99)
    )
    assert remove_gone_servers() == 0
    assert Server.objects.count() == 2


@pytest.mark.only("mysql", "postgresql")
def test_a_server_with_a_locked_queue_is_left_for_the_next_run(orders: QueueGroup) -> None:
    with locked(Queue.objects.get(queue_id="q2")):
        assert remove_gone_servers() == 0
    assert owners(orders) == ["", "", "A", ""]
    QueueGroup.objects.update(rests_until=None)
    assert remove_gone_servers() == 1

"""After a plan that met a locked row no server plans again at once, as all need the queue group's row."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.models import Server
from resourcepool.queues import administration, reassignment
from resourcepool.queues.planning import changes as planning
from resourcepool.queues.serving.snapshot import read_snapshot
from tests.queues.members import (
    NAME,
    create_queue_group,
    end_postponement,
    expire,
    foreign_server,
    join,
    lock,
    owners,
    queue,
    read_queue_group,
    replan,
    requested_ago,
    requested_by_b,
)

HEARTBEAT = 9.0  # seconds

pytestmark = pytest.mark.usefixtures("transactional_db")


def of_a_dead_server(other: BaseDatabaseWrapper) -> None:
    create_queue_group(3, heartbeat_every=HEARTBEAT)
    a = foreign_server("A")
    foreign_server("B")
    lock(other, "1")
    expire(a)
    replan(if_due=True)


def that_is_to_be_asked_for(other: BaseDatabaseWrapper) -> None:
    create_queue_group(1, heartbeat_every=HEARTBEAT)
    foreign_server("A")
    foreign_server("B")
    lock(other, "1")
    administration.drain(NAME, "A")


def that_is_to_be_taken_over(other: BaseDatabaseWrapper) -> None:
    requested_by_b(heartbeat_every=HEARTBEAT)
    requested_ago("1", 31)
    lock(other, "1")
    replan(if_due=True)


def that_is_to_be_handed_over(other: BaseDatabaseWrapper) -> None:
    a, _ = requested_by_b(heartbeat_every=HEARTBEAT)
    lock(other, "1")
    reassignment.release("default", read_queue_group().pk, "A", a.pk, [queue("1").pk], [])


@pytest.mark.only("mysql", "postgresql")
@pytest.mark.parametrize(
    "locked",
    [of_a_dead_server, that_is_to_be_asked_for, that_is_to_be_taken_over, that_is_to_be_handed_over],
)
class TestALockedQueue:
    def test_has_nobody_plan_again_before_a_heartbeat_has_passed(
        self, locked: Callable[..., None], other: BaseDatabaseWrapper, plans: list[Any]
    ) -> None:
        locked(other)
        members = [join(name) for name in "CDE"]
        replan()  # as if the last of them had found it locked
        plans.clear()
        for _ in range(2):
            for member in members:
                member.turn()
        replan(if_due=True)
        assert plans == []
        assert read_snapshot("default", read_queue_group().pk).plan_in > 0
        other.rollback()

    def test_is_tried_again_after_that_and_then_no_more(
        self, locked: Callable[..., None], other: BaseDatabaseWrapper, plans: list[Any]
    ) -> None:
        locked(other)
        end_postponement()
        replan(if_due=True)
        assert len(plans) > 0
        other.rollback()
        end_postponement()
        replan(if_due=True)
        assert not read_queue_group().is_assignment_due
        assert read_queue_group().rests_until is None

    def test_keeps_no_newcomer_and_no_operator_waiting(
        self, locked: Callable[..., None], other: BaseDatabaseWrapper, plans: list[Any]
    ) -> None:
        locked(other)
        plans.clear()
        foreign_server("C")
        administration.add_queues(NAME, ["x", "y"])
        assert len(plans) == 2
        assert "-" not in owners().split()
        other.rollback()


def test_what_is_not_late_by_its_owners_own_time_is_not_planned_again_and_again(plans: list[Any]) -> None:
    """A running server keeps the time with which it registered."""
    create_queue_group(1, heartbeat_every=HEARTBEAT)
    foreign_server("A", ttl=100)
    foreign_server("B")
    administration.drain(NAME, "A")
    requested_ago("1", 31)
    plans.clear()
    for _ in range(3):
        replan(if_due=True)
    assert (owners(), len(plans)) == ("A>B", 1)
    assert read_snapshot("default", read_queue_group().pk).plan_in > 0
    requested_ago("1", 111)
    end_postponement()
    replan(if_due=True)
    assert owners() == "B"


def test_a_plan_that_did_all_there_was_to_do_keeps_nobody_from_the_next(plans: list[Any]) -> None:
    create_queue_group(2, heartbeat_every=HEARTBEAT)
    a, b = foreign_server("A"), foreign_server("B")
    foreign_server("C")
    for server in (a, b):
        expire(server)
        replan(if_due=True)
    assert owners() == "C C"
    assert Server.objects.count() == 1


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every plan that is made."""
    made_plans: list[Any] = []
    plan = planning.plan

    def counted(*args: Any, **more: Any) -> Any:
        made_plans.append(plan(*args, **more))
        return made_plans[-1]

    monkeypatch.setattr(planning, "plan", counted)
    return made_plans

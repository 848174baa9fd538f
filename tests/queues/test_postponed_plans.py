"""What a plan cannot do yet makes nobody plan again at once: the others have to get at the queue group's row, too."""

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
    asked_ago,
    asked_by_b,
    dies,
    has_rested,
    joined,
    kind,
    lock,
    made,
    queue,
    replan,
    stranger,
    table,
)

HEARTBEAT = 9.0  # seconds

pytestmark = pytest.mark.usefixtures("transactional_db")


def of_a_dead_server(other: BaseDatabaseWrapper) -> None:
    made(3, heartbeat_every=HEARTBEAT)
    a = stranger("A")
    stranger("B")
    lock(other, "1")
    dies(a)
    replan(if_due=True)


def that_is_to_be_asked_for(other: BaseDatabaseWrapper) -> None:
    made(1, heartbeat_every=HEARTBEAT)
    stranger("A")
    stranger("B")
    lock(other, "1")
    administration.drain(NAME, "A")


def that_is_to_be_taken_over(other: BaseDatabaseWrapper) -> None:
    asked_by_b(heartbeat_every=HEARTBEAT)
    asked_ago("1", 31)
    lock(other, "1")
    replan(if_due=True)


def that_is_to_be_handed_over(other: BaseDatabaseWrapper) -> None:
    a, _ = asked_by_b(heartbeat_every=HEARTBEAT)
    lock(other, "1")
    reassignment.release("default", kind().pk, "A", a.pk, [queue("1").pk], [])


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
        members = [joined(name) for name in "CDE"]
        replan()  # as if the last of them had found it locked
        plans.clear()
        for _ in range(2):
            for member in members:
                member.turn()
        replan(if_due=True)
        assert plans == []
        assert read_snapshot("default", kind().pk).plan_in > 0
        other.rollback()

    def test_is_tried_again_after_that_and_then_no_more(
        self, locked: Callable[..., None], other: BaseDatabaseWrapper, plans: list[Any]
    ) -> None:
        locked(other)
        has_rested()
        replan(if_due=True)
        assert len(plans) > 0
        other.rollback()
        has_rested()
        replan(if_due=True)
        assert not kind().is_assignment_due
        assert kind().rests_until is None

    def test_keeps_no_newcomer_and_no_operator_waiting(
        self, locked: Callable[..., None], other: BaseDatabaseWrapper, plans: list[Any]
    ) -> None:
        locked(other)
        plans.clear()
        stranger("C")
        administration.add_queues(NAME, ["x", "y"])
        assert len(plans) == 2
        assert "-" not in table().split()
        other.rollback()


def test_what_is_not_late_by_its_owners_own_time_is_not_planned_again_and_again(plans: list[Any]) -> None:
    """A running server keeps the time with which it registered."""
    made(1, heartbeat_every=HEARTBEAT)
    stranger("A", ttl=100)
    stranger("B")
    administration.drain(NAME, "A")
    asked_ago("1", 31)
    plans.clear()
    for _ in range(3):
        replan(if_due=True)
    assert (table(), len(plans)) == ("A>B", 1)
    assert read_snapshot("default", kind().pk).plan_in > 0
    asked_ago("1", 111)
    has_rested()
    replan(if_due=True)
    assert table() == "B"


def test_a_plan_that_did_all_there_was_to_do_keeps_nobody_from_the_next(plans: list[Any]) -> None:
    made(2, heartbeat_every=HEARTBEAT)
    a, b = stranger("A"), stranger("B")
    stranger("C")
    for server in (a, b):
        dies(server)
        replan(if_due=True)
    assert table() == "C C"
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

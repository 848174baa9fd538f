"""Queues that stay on draining servers, and why no other server takes them."""

from typing import Any

import pytest

from resourcepool.models import QueueGroup
from resourcepool.queues import administration
from resourcepool.status.queues.problems import Stuck
from resourcepool.status.queues.queue_groups import queue_group
from resourcepool.status.queues.system import stuck_drains
from tests.committed import Statement
from tests.queues.members import NAME, create_queue_group, expire, foreign_server, replan

pytestmark = pytest.mark.usefixtures("transactional_db")


def stuck() -> Stuck | None:
    return queue_group(NAME).stuck


def alone() -> list[Any]:
    return []


def beside_one_without_its_label() -> list[Any]:
    administration.change_queues(NAME, ["1"], labels={"zone": "eu"})
    return [foreign_server("B")]


def beside_one_that_is_full() -> list[Any]:
    administration.add_queues(NAME, ["x", "y", "z"])
    return [foreign_server("B", limit=1)]


def beside_one_that_drains() -> list[Any]:
    return [foreign_server("B", state="draining")]


@pytest.mark.parametrize(
    ("beside", "count", "queue", "why"),
    [
        (alone, 2, "1", "no other server is running"),
        (beside_one_without_its_label, 1, "1", "no living server has zone=eu"),
        (
            beside_one_that_is_full,
            4,
            "1",
            "every server that may have it has as many queues as its limit allows",
        ),
        (beside_one_that_drains, 2, "1", "every server that may have it is draining"),
    ],
)
def test_what_nobody_else_may_have_stays_and_says_why(beside: Any, count: int, queue: str, why: str) -> None:
    create_queue_group(2)
    a = foreign_server("A", labels={"zone": "eu"})
    beside()
    administration.drain(NAME, "A")
    assert stuck() == Stuck(count, str(a), queue, why)
    administration.undrain(NAME, "A")
    assert stuck() is None


def test_what_others_have_asked_for_and_what_the_dead_have_does_not_count() -> None:
    create_queue_group(2)
    a = foreign_server("A")
    foreign_server("B")
    administration.drain(NAME, "A")
    assert stuck() is None
    administration.drain(NAME, "B")
    assert stuck() == Stuck(2, str(a), "1", "every server that may have it is draining")
    expire(a)
    assert stuck() is None


def test_a_newcomer_that_may_have_them_ends_it() -> None:
    create_queue_group(2)
    foreign_server("A")
    administration.drain(NAME, "A")
    assert stuck() is not None
    foreign_server("B")
    assert stuck() is None


def test_it_costs_nothing_while_nobody_drains(statements: list[Statement]) -> None:
    create_queue_group(2)
    foreign_server("A")
    statements.clear()
    queue_group(NAME)
    few = len(statements)
    administration.drain(NAME, "A")
    statements.clear()
    queue_group(NAME)
    assert len(statements) == few + 2


def test_each_queue_group_has_its_own() -> None:
    create_queue_group(1)
    create_queue_group(1, name="other")
    a, b = foreign_server("A"), foreign_server("A", of="other")
    administration.drain(NAME, "A")
    administration.drain("other", "A")
    found = {one.name: queue_group(one.name).stuck for one in QueueGroup.objects.all()}
    assert {name: one and one.server for name, one in found.items()} == {NAME: str(a), "other": str(b)}


def test_the_alarm_says_what_to_do() -> None:
    create_queue_group(2)
    a = foreign_server("A")
    administration.drain(NAME, "A")
    replan()
    (alarm,) = stuck_drains(queue_group(NAME))
    assert alarm.text.startswith(
        f"queues that stay on draining servers: 2, for example queue 1 on {a}: no other server is running. Start"
    )

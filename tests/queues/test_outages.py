"""Outages longer than the time after which servers are presumed dead move no queue."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.models import Queue, Server
from resourcepool.queues import administration
from resourcepool.queues.planning.strategies import STRATEGIES
from resourcepool.queues.serving.membership import Membership
from tests.committed import Clock, Statement
from tests.queues.members import (
    NAME,
    TTL,
    create_queue_group,
    end_postponement,
    expire,
    handles,
    join,
    lock,
    moves,
    owners,
    rejoin,
    replan,
    sole_server,
)

pytestmark = pytest.mark.usefixtures("transactional_db")


def away(*members: Membership) -> None:
    """Let these servers and the database be without contact for too long."""
    for member in members:
        expire(Server.objects.get(pk=member.lease.pk))
        member.lease._lose("a test cut it off")


def settled(members: list[Membership]) -> None:
    """Let all requested queues be handed over."""
    for _ in range(3):
        for member in members:
            member.turn()
    assert ">" not in owners()


def of_equal_ones() -> list[Membership]:
    return [join(name) for name in "ABCD"]


def with_weights_labels_and_limits() -> list[Membership]:
    administration.change_queues(NAME, ["3", "9", "12"], labels={"zone": "eu"})
    administration.pin(NAME, ["1", "2"], "B")
    return [
        join("A", weight=3),
        join("B", limit=4),
        join("C", labels={"zone": "eu"}),
        join("D", weight=2, labels={"zone": "eu"}),
    ]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("come", [of_equal_ones, with_weights_labels_and_limits])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_all_that_come_back_go_on_with_what_they_had(
    strategy: str, come: Callable[[], list[Membership]], order: tuple[int, ...]
) -> None:
    create_queue_group(16, strategy=strategy)
    members = come()
    settled(members)
    before, fences, told = owners(), fences_of_all(), len(moves())
    away(*members)
    back = []
    for index in order:
        back.append(rejoin(members[index]))
        for one in back:  # servers that have returned check meanwhile, and find the others overdue
            one.turn()
        replan(if_due=True, spare_overdue=True)
    settled(back)
    assert owners() == before
    assert fences_of_all() == {queue_id: fence + 1 for queue_id, fence in fences.items()}
    came_back = r"assigned \d+ (.+)>(.+): \1 came back as \2"
    assert all(re.fullmatch(came_back, each) for each in moves()[told:])
    assert Server.objects.count() == 4
    assert sum(len(handles(one)) for one in back) == 16


def test_what_was_asked_for_still_is_and_the_drain_goes_on() -> None:
    create_queue_group(2)
    a, b = join("A"), join("B")
    administration.drain(NAME, "A")
    assert sorted(owners().split()) == ["A>B", "A>B"]
    a.turn()  # notices, but has begun to work on a queue
    away(b)
    again = rejoin(b)
    assert "A" not in [name for name in owners().split() if ">" not in name]
    assert {name.rpartition(">")[2] for name in owners().split()} == {"B"}
    away(a)
    later = rejoin(a)
    assert later.config.state == Server.State.DRAINING
    replan()
    for member in (later, again):
        member.turn()
    assert owners() == "B B"


def test_one_that_does_not_come_back_is_judged_when_the_others_had_their_chance(
    process_clock: Clock, statements: list[Statement]
) -> None:
    create_queue_group(4)
    a, b = join("A"), join("B")
    settled([a, b])
    away(a, b)
    process_clock.stop()
    again = rejoin(a)
    statements.clear()
    for _ in range(4):
        pass_by(process_clock, again, TTL / 4 - 0.1)
        assert Counter(owners().split()) == {"A": 2, "B": 2}
    assert not [one.sql for one in statements if "UPDATE" in one.sql and "_queuegroup" in one.sql], (
        "nor tries to"
    )
    pass_by(process_clock, again, 2)
    assert owners() == "A A A A"
    assert Server.objects.count() == 1


def test_one_that_has_kept_its_own_row_judges_nobody_right_after_a_long_silence(process_clock: Clock) -> None:
    """A slightly shorter outage expires only the leases that were renewed first."""
    create_queue_group(4)
    a, b = join("A"), join("B")
    settled([a, b])
    process_clock.advance(TTL * 0.7)
    away(b)
    a.turn()
    assert Counter(owners().split()) == {"A": 2, "B": 2}
    again = rejoin(b)
    settled([a, again])
    assert Counter(owners().split()) == {"A": 2, "B": 2}


def test_who_leaves_or_drains_right_after_a_silence_takes_nothing_from_the_others(process_clock: Clock) -> None:
    create_queue_group(6)
    members = [join(name) for name in "ABC"]
    settled(members)
    process_clock.advance(TTL * 0.7)
    away(members[1])
    members[0].leave()
    assert owners().split().count("B") == 2
    assert set(owners().split()) == {"B", "C"}


def test_who_is_not_back_yet_is_given_nothing(process_clock: Clock) -> None:
    create_queue_group(3)
    a, b = join("A"), join("B")
    settled([a, b])
    away(a, b)
    had = Counter(owners().split())["B"]
    again = rejoin(a)
    operating_adds(again, ["x", "y", "z"])
    assert Counter(name.partition(">")[0] for name in owners().split()) == {"A": 6 - had, "B": had}


def operating_adds(by: Membership, ids: list[str]) -> None:
    """Add queues in a plan of a server that has just come back."""

    def add(queue_group: Any) -> None:
        some = [Queue(queue_group=queue_group, queue_id=each) for each in ids]
        Queue.objects.bulk_create(some)

    by._reassign(first=add)


def test_a_queue_that_is_being_removed_goes() -> None:
    a = sole_server(2)
    administration.remove_queues(NAME, ["1"])
    away(a)
    rejoin(a).turn()
    assert owners() == "A"


@pytest.mark.only("mysql", "postgresql")
def test_a_queue_whose_row_is_locked_follows(other: BaseDatabaseWrapper) -> None:
    a = sole_server(2)
    lock(other, "1")
    away(a)
    again = rejoin(a)
    again.turn()
    assert list(handles(again)) == ["2"]
    assert Server.objects.count() == 2, "or its queue would be nobody's"
    other.rollback()
    end_postponement()
    replan()
    again.turn()
    assert sorted(handles(again)) == ["1", "2"]
    assert Server.objects.count() == 1


def fences_of_all() -> dict[str, int]:
    return dict(Queue.objects.values_list("queue_id", "fence"))


def pass_by(clock: Clock, member: Membership, seconds: float) -> None:
    """Let so much time pass for this process, and for this server nothing special."""
    clock.advance(seconds)
    member.turn()

"""The database, or the processes, were away for longer than it takes to be judged dead: nothing moves for that."""

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
from tests.eventually import eventually
from tests.queues.members import (
    NAME,
    TTL,
    dies,
    handles,
    has_rested,
    joined,
    left,
    lock,
    made,
    moves,
    replan,
    returned,
    stranger,
    table,
)

pytestmark = pytest.mark.usefixtures("transactional_db")


def away(*members: Membership) -> None:
    """Let nobody have heard of these for too long, nor they of the database."""
    for member in members:
        dies(Server.objects.get(pk=member.lease.pk))
        member.lease.lose("a test cut it off")


def settled(members: list[Membership]) -> None:
    """Let everything be handed over that is asked for."""
    for _ in range(3):
        for member in members:
            member.turn()
    assert ">" not in table()


def of_equal_ones() -> list[Membership]:
    return [joined(name) for name in "ABCD"]


def with_weights_labels_and_limits() -> list[Membership]:
    administration.change_queues(NAME, ["3", "9", "12"], labels={"zone": "eu"})
    administration.pin(NAME, ["1", "2"], "B")
    return [
        joined("A", weight=3),
        joined("B", limit=4),
        joined("C", labels={"zone": "eu"}),
        joined("D", weight=2, labels={"zone": "eu"}),
    ]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("come", [of_equal_ones, with_weights_labels_and_limits])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_all_that_come_back_go_on_with_what_they_had(
    strategy: str, come: Callable[[], list[Membership]], order: tuple[int, ...]
) -> None:
    made(16, strategy=strategy)
    members = come()
    settled(members)
    before, fences, told = table(), fences_of_all(), len(moves())
    away(*members)
    back = []
    for index in order:
        back.append(returned(members[index]))
        for one in back:  # whoever is back already looks in between, and finds the others silent
            one.turn()
        replan(if_due=True, spare_overdue=True)
    settled(back)
    assert table() == before
    assert fences_of_all() == {queue_id: fence + 1 for queue_id, fence in fences.items()}
    assert all("came back as" in each for each in moves()[told:])
    assert Server.objects.count() == 4
    assert sum(len(handles(one)) for one in back) == 16


def test_what_was_asked_for_still_is_and_the_drain_goes_on() -> None:
    made(2)
    a, b = joined("A"), joined("B")
    administration.drain(NAME, "A")
    assert sorted(table().split()) == ["A>B", "A>B"]
    a.turn()  # hears of it, but has begun to work on one
    away(b)
    again = returned(b)
    assert "A" not in [name for name in table().split() if ">" not in name]
    assert {name.rpartition(">")[2] for name in table().split()} == {"B"}
    away(a)
    later = returned(a)
    assert later.config.state == Server.State.DRAINING
    replan()
    for member in (later, again):
        member.turn()
    assert table() == "B B"


def test_one_that_does_not_come_back_is_judged_when_the_others_had_their_chance(
    process_clock: Clock, statements: list[Statement]
) -> None:
    made(4)
    a, b = joined("A"), joined("B")
    settled([a, b])
    away(a, b)
    process_clock.stop()
    again = returned(a)
    statements.clear()
    for _ in range(4):
        pass_by(process_clock, again, TTL / 4 - 0.1)
        assert Counter(table().split()) == {"A": 2, "B": 2}
    assert not [one.sql for one in statements if "UPDATE" in one.sql and "_queuegroup" in one.sql], (
        "nor tries to"
    )
    pass_by(process_clock, again, 2)
    assert table() == "A A A A"
    assert Server.objects.count() == 1


def test_one_that_is_away_again_before_it_could_judge_judges_when_it_returns(process_clock: Clock) -> None:
    """Else the queues of the dead would lie for as long as the database comes and goes."""
    made(4)
    a, b = joined("A"), joined("B")
    settled([a, b])
    away(a, b)
    again = returned(a)
    again.turn()
    assert Counter(table().split()) == {"A": 2, "B": 2}
    process_clock.advance(3 * TTL)
    away(again)
    returned(again).turn()
    assert table() == "A A A A"


def test_a_server_that_has_seen_no_outage_judges_at_once() -> None:
    """Else one whose own network comes and goes would keep the queues of the dead from everybody."""
    made(4)
    a, b, c = joined("A"), joined("B"), joined("C")
    settled([a, b, c])
    away(a, b)
    again = returned(a)
    again.turn()
    c.turn()
    replan()
    settled([again, c])
    assert Counter(table().split()) == {"A": 2, "C": 2}


def test_one_that_has_kept_its_own_row_judges_nobody_right_after_a_long_silence(process_clock: Clock) -> None:
    """An outage that is a little shorter lets only those lapse that had renewed themselves longest before."""
    made(4)
    a, b = joined("A"), joined("B")
    settled([a, b])
    process_clock.advance(TTL * 0.7)
    away(b)
    a.turn()
    assert Counter(table().split()) == {"A": 2, "B": 2}
    again = returned(b)
    settled([a, again])
    assert Counter(table().split()) == {"A": 2, "B": 2}


def test_who_leaves_or_drains_right_after_a_silence_takes_nothing_from_the_others(process_clock: Clock) -> None:
    made(6)
    members = [joined(name) for name in "ABC"]
    settled(members)
    process_clock.advance(TTL * 0.7)
    away(members[1])
    members[0].leave()
    assert table().split().count("B") == 2
    assert set(table().split()) == {"B", "C"}


def test_who_is_not_back_yet_is_given_nothing(process_clock: Clock) -> None:
    made(3)
    a, b = joined("A"), joined("B")
    settled([a, b])
    away(a, b)
    had = Counter(table().split())["B"]
    again = returned(a)
    operating_adds(again, ["x", "y", "z"])
    assert Counter(name.partition(">")[0] for name in table().split()) == {"A": 6 - had, "B": had}


def operating_adds(by: Membership, ids: list[str]) -> None:
    """Add queues in a plan of a server that has just come back."""

    def add(queue_group: Any) -> None:
        some = [Queue(queue_group=queue_group, queue_id=each) for each in ids]
        Queue.objects.bulk_create(some)

    by._reassign(first=add)


def test_a_queue_that_is_being_removed_goes() -> None:
    made(2)
    a = joined("A")
    a.turn()
    administration.remove_queues(NAME, ["1"])
    away(a)
    returned(a).turn()
    assert table() == "A"


@pytest.mark.only("mysql", "postgresql")
def test_a_queue_whose_row_is_locked_follows(other: BaseDatabaseWrapper) -> None:
    made(2)
    a = joined("A")
    a.turn()
    lock(other, "1")
    away(a)
    again = returned(a)
    again.turn()
    assert list(handles(again)) == ["2"]
    assert Server.objects.count() == 2, "or its queue would be nobody's"
    other.rollback()
    has_rested()
    replan()
    again.turn()
    assert sorted(handles(again)) == ["1", "2"]
    assert Server.objects.count() == 1


def test_one_whose_queues_others_have_by_now_gets_its_share_like_a_newcomer() -> None:
    made(4)
    a, b = joined("A"), joined("B")
    settled([a, b])
    away(a)
    replan(if_due=True)
    assert table() == "B B B B"
    settled([b, returned(a)])
    assert Counter(table().split()) == {"A": 2, "B": 2}


def test_its_old_handles_are_good_for_nothing() -> None:
    made(1)
    a = joined("A")
    a.turn()
    old = handles(a)["1"]
    away(a)
    eventually(lambda: not old.is_held)
    new = returned(a)
    new.turn()
    assert not old.is_held
    assert handles(new)["1"].fence == old.fence + 1


def test_it_is_inherited_by_the_next_run_alone() -> None:
    """Somebody of the same name is somebody else: the old one may still work."""
    made(2)
    first = joined("A")
    first.turn()
    twin = stranger("A")
    assert {row.cur_server_id for row in Queue.objects.all()} == {first.lease.pk}
    left(twin)
    assert [handle.is_held for handle in first.held] == [True, True]


def fences_of_all() -> dict[str, int]:
    return dict(Queue.objects.values_list("queue_id", "fence"))


def pass_by(clock: Clock, member: Membership, seconds: float) -> None:
    """Let so much time pass for this process, and for this server nothing special."""
    clock.advance(seconds)
    member.turn()

"""The tables of docs/reference/queues.md, row by row, and the number of moves."""

import pytest

from resourcepool.queues.planning.assignment import Member, QueueSnapshot, Targets
from resourcepool.queues.planning.strategies import round_robin
from tests.queues.plans import after, nowhere, queue_at, servers

A, B, C, D = 1, 2, 3, 4


def given_to(members: list[Member], queues: int = 5) -> list[int | None]:
    return list(round_robin(nowhere(queues), members).values())


@pytest.mark.parametrize(
    ("members", "table"),
    [
        (1, [A, A, A, A, A]),
        (2, [A, B, A, B, A]),
        (3, [A, B, C, A, B]),
        (4, [A, B, C, D, A]),
    ],
)
def test_the_documents_tables_hold_whoever_has_the_queues(members: int, table: list[int]) -> None:
    everything_at_a = [queue_at(pk, A, A) for pk in range(1, 6)]
    assert list(round_robin(everything_at_a, servers(members)).values()) == table
    assert given_to(servers(members)) == table


@pytest.mark.parametrize(
    ("weights", "turn"),
    [
        ([2, 1], [A, B, A, A, B, A]),
        ([1, 3], [A, B, B, B, A, B]),
        ([2, 2], [A, B, A, B, A, B]),
        ([2, 4], [A, B, B, A, B, B]),
        ([1, 2, 3], [A, B, C, B, C, C]),
    ],
)
def test_a_member_comes_in_as_many_passes_as_its_weight(weights: list[int], turn: list[int]) -> None:
    assert given_to([Member(pk, weight=weight) for pk, weight in enumerate(weights, 1)], 6) == turn


def test_a_great_weight_costs_no_more_than_a_small_one() -> None:
    assert given_to([Member(A, weight=10**12), Member(B)]) == [A, B, A, A, A]


def test_who_may_not_have_a_queue_is_passed_over_and_the_turn_goes_on_after_who_got_it() -> None:
    members = [Member(A), Member(B), Member(C, labels={"zone": "eu"})]
    places = [
        queue_at(1, labels={"zone": "eu"}),
        queue_at(2),
        queue_at(3),
        queue_at(4, labels={"zone": "eu"}),
        queue_at(5),
    ]
    assert list(round_robin(places, members).values()) == [C, A, B, C, A]


def test_a_queue_for_nobody_leaves_the_turn_where_it_was() -> None:
    places = [queue_at(1), queue_at(2, labels={"zone": "eu"}), queue_at(3)]
    assert list(round_robin(places, servers(2)).values()) == [A, None, B]


def test_who_is_full_is_passed_over() -> None:
    assert given_to([Member(A, limit=1), Member(B, limit=2)]) == [A, B, B, None, None]


def test_one_of_eight_leaving_moves_nearly_everything() -> None:
    """Only 8 of the 64 queues would have to move."""
    members = servers(8)
    assert mean_moves(64, members) == 53.5


def mean_moves(queues: int, members: list[Member]) -> float:
    """Return how many queues move when a server leaves, including its own, on average over all servers."""
    places = after(nowhere(queues), round_robin(nowhere(queues), members))
    return sum(changed(places, round_robin(places, without(members, gone))) for gone in members) / len(members)


def without(members: list[Member], gone: Member) -> list[Member]:
    return [member for member in members if member is not gone]


def changed(places: list[QueueSnapshot], targets: Targets) -> int:
    return sum(targets[place.pk] != place.server for place in places)

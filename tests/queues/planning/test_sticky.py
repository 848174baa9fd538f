"""Even, and with the fewest moves."""

from fractions import Fraction
from itertools import product
from math import ceil, floor

import pytest
from hypothesis import given, settings

from resourcepool.queues.planning.assignment import Member, QueueSnapshot, candidates, fair_shares, kinds_of
from resourcepool.queues.planning.strategies import sticky
from tests.queues.plans import after, counts, moves, nowhere, plain_worlds, queue_at, servers, worlds


def settled(count: int, members: list[Member]) -> list[QueueSnapshot]:
    return after(nowhere(count), sticky(nowhere(count), members))


@pytest.mark.parametrize(
    ("queues", "before", "now", "expected"),
    [
        (64, servers(8), servers(8)[1:], 0),
        (64, servers(8), servers(7), 0),
        (1024, servers(10), servers(10)[1:], 0),
        (64, servers(7), servers(8), 8),
        (5, servers(1), servers(2), 2),
        (10, servers(2), [Member(1, weight=4), Member(2)], 3),
        (10, servers(2), [Member(1, limit=2), Member(2)], 3),
    ],
)
def test_who_stays_gives_up_no_more_than_the_change_takes(queues, before, now, expected) -> None:
    places = settled(queues, before)
    assert moves(places, sticky(places, now), now) == expected


@pytest.mark.parametrize(("queues", "members", "expected"), [(64, 8, {8}), (1024, 10, {102, 103})])
def test_whoever_leaves_only_its_own_queues_move(queues: int, members: int, expected: set[int]) -> None:
    places = settled(queues, servers(members))
    for gone in servers(members):
        targets = sticky(places, [member for member in servers(members) if member.pk != gone.pk])
        assert sum(targets[place.pk] != place.server for place in places) in expected


def test_shares_are_even_where_two_members_have_to_make_room_for_a_third() -> None:
    assert fair_shares({(0, 1): 4, (0, 2): 2, (2, 3): 6}, servers(4)) == [3, 3, 3, 3]


@given(world=plain_worlds(queues=40, members=6))
def test_everybody_is_less_than_one_queue_from_its_weight(world) -> None:
    places, members = world
    weights = sum(member.weight for member in members)
    for count, member in zip(counts(sticky(places, members), members), members, strict=True):
        assert abs(count * weights - len(places) * member.weight) < weights


@settings(max_examples=40)
@given(world=plain_worlds(queues=6, members=4))
def test_no_assignment_as_even_moves_fewer(world) -> None:
    """Every assignment there is, is tried."""
    places, members = world
    shares = fair_shares({tuple(range(len(members))): len(places)}, members)
    every = (
        dict(zip([place.pk for place in places], chosen, strict=True))
        for chosen in product([member.pk for member in members], repeat=len(places))
    )
    fewest = min((moves(places, t, members) for t in every if is_even(counts(t, members), shares)), default=0)
    assert moves(places, sticky(places, members), members) == (fewest if members else 0)


@given(world=plain_worlds(queues=40, members=6))
def test_no_even_counts_need_fewer_moves(world) -> None:
    """The same for more queues: which of them move makes no difference, so only the counts are tried."""
    places, members = world
    if not members:
        return
    have = [sum(place.server == member.pk for place in places) for member in members]
    bands = [
        {floor(share), ceil(share)} for share in fair_shares({tuple(range(len(members))): len(places)}, members)
    ]
    fewest = min(
        sum(max(0, count - wanted) for count, wanted in zip(have, even, strict=True))
        for even in product(*bands)
        if sum(even) == len(places)
    )
    assert moves(places, sticky(places, members), members) == fewest


@given(world=worlds())
def test_with_labels_pins_and_limits_everybody_is_less_than_one_from_its_fair_share(world) -> None:
    places, members = world
    targets = sticky(places, members)
    assert is_even(counts(targets, members), shares_of(places, members))


@settings(max_examples=60)
@given(world=worlds(queues=6, members=4, weights=1))
def test_no_assignment_has_more_of_the_queues_or_comes_nearer_to_the_fair_shares(world) -> None:
    """Tries every assignment. Members are equal here, so the best assignment has the least sum of squares."""
    places, members = world
    shares = shares_of(places, members)
    choices = [[None, *(member.pk for member in candidates(place, members))] for place in places]
    every = [dict(enumerate(chosen)) for chosen in product(*choices)]
    allowed = [judged(counts(targets, members), shares) for targets in every if within_limits(targets, members)]
    assert judged(counts(sticky(places, members), members), shares) == min(allowed)


@given(world=worlds())
def test_no_single_move_would_lessen_the_imbalance(world) -> None:
    places, members = world
    targets = sticky(places, members)
    excess = {
        member.pk: count - share
        for member, count, share in zip(
            members, counts(targets, members), shares_of(places, members), strict=True
        )
    }
    for place in places:
        giver = targets[place.pk]
        if giver is not None and excess[giver] >= 1:
            assert all(excess[giver] - excess[taker.pk] <= 1 for taker in candidates(place, members))


def shares_of(places: list[QueueSnapshot], members: list[Member]):
    kinds = [kind for kind in kinds_of(places, members) if kind]
    return fair_shares({kind: kinds.count(kind) for kind in kinds}, members)


def is_even(having: list[int], shares) -> bool:
    return all(abs(count - share) < 1 for count, share in zip(having, shares, strict=True))


def judged(having: list[int], shares) -> tuple[int, Fraction]:
    distances = [count - share for count, share in zip(having, shares, strict=True)]
    return -sum(having), sum((distance * distance for distance in distances), Fraction(0))


def within_limits(targets, members: list[Member]) -> bool:
    return all(
        m.limit is None or count <= m.limit for m, count in zip(members, counts(targets, members), strict=True)
    )


def test_a_pin_moves_one_queue_there_and_one_back() -> None:
    members = servers(4)
    places = settled(8, members)
    pinned = [queue_at(p.pk, p.server, p.cur, pin="server-4") if p.pk == 1 else p for p in places]
    targets = sticky(pinned, members)
    assert targets[1] == 4
    assert moves(pinned, targets, members) == 2


def test_more_pins_than_its_share_leave_the_rest_to_the_others_by_weight() -> None:
    members = [Member(1, "a"), Member(2, "b", weight=2), Member(3, "c"), Member(4, "d")]
    places = [queue_at(pk, pin="a" if pk <= 40 else "") for pk in range(1, 65)]
    assert counts(sticky(places, members), members) == [40, 12, 6, 6]


def test_who_has_too_few_gets_one_though_nobody_has_too_many() -> None:
    homes = [1, 1, 2, 2, 3]
    places = [queue_at(pk, home, home) for pk, home in enumerate(homes, 1)]
    targets = sticky(places, servers(4))
    assert sorted(counts(targets, servers(4))) == [1, 1, 1, 2]
    assert moves(places, targets, servers(4)) == 1


def test_who_has_too_few_gets_it_from_who_can_give_whoever_else_has_more() -> None:
    """The only server of zone b with a queue is furthest above its share, but cannot help zone a."""
    members = [Member(pk, labels={"zone": "a" if pk <= 4 else "b"}) for pk in range(1, 11)]
    places = [queue_at(pk, home, home, {"zone": "a"}) for pk, home in enumerate([1, 1, 2, 2, 3], 1)]
    places.append(queue_at(6, 10, 10, {"zone": "b"}))
    targets = sticky(places, members)
    assert sorted(counts(targets, members)[:4]) == [1, 1, 1, 2]
    assert targets[6] == 10


def test_a_label_taken_away_moves_only_the_queues_that_need_it() -> None:
    members = [Member(pk, labels={"zone": "eu"}) for pk in (1, 2, 3)]
    places = [queue_at(pk, labels={"zone": "eu"} if pk <= 3 else {}) for pk in range(1, 10)]
    places = after(places, sticky(places, members))
    less = [Member(1), *members[1:]]
    targets = sticky(places, less)
    needing = sum(place.server == 1 and bool(place.labels) for place in places)
    assert needing
    assert moves(places, targets, less) == 2 * needing


def test_room_is_made_by_a_chain_for_a_queue_whose_members_are_full() -> None:
    members = [
        Member(1, labels={"a": ""}, limit=1),
        Member(2, labels={"a": "", "b": ""}, limit=1),
        Member(3, labels={"b": ""}),
    ]
    places = [queue_at(1, 1, 1, {"a": ""}), queue_at(2, 2, 2, {"b": ""}), queue_at(3, labels={"a": ""})]
    targets = sticky(places, members)
    assert targets[2] == 3
    assert sorted([targets[1], targets[3]]) == [1, 2]


def test_a_chain_lightens_a_member_whose_queues_the_least_laden_may_not_have() -> None:
    members = [Member(1, labels={"a": ""}), Member(2, labels={"a": "", "b": ""}), Member(3, labels={"b": ""})]
    places = [queue_at(pk, 1, 1, {"a": ""}) for pk in range(4)] + [
        queue_at(pk, 2, 2, {"b": ""}) for pk in range(4, 6)
    ]
    targets = sticky(places, members)
    assert counts(targets, members) == [2, 2, 2]
    assert moves(places, targets, members) == 4


def test_a_server_that_joins_with_a_label_gets_its_queues_by_a_chain() -> None:
    members = [Member(1, labels={"a": ""}), Member(2, labels={"a": "", "b": ""})]
    places = [queue_at(pk, 1, 1, {"a": ""}) for pk in range(3)] + [
        queue_at(pk, 2, 2, {"b": ""}) for pk in range(3, 6)
    ]
    joined = [*members, Member(3, labels={"b": ""})]
    assert counts(sticky(places, joined), joined) == [2, 2, 2]


def test_of_the_queues_that_could_move_a_request_is_taken_back_first() -> None:
    places = [queue_at(1, 1, 1), queue_at(2, 1, owner=2), queue_at(3, 1, owner=3), queue_at(4, 1, 1)]
    assert sticky(places, [Member(1), Member(2)]) == {1: 1, 2: 2, 3: 2, 4: 1}


def test_then_one_that_has_not_moved_yet_then_the_last() -> None:
    assert sticky([queue_at(1, 1, owner=9), queue_at(2, 1, 1)], servers(2)) == {1: 2, 2: 1}
    assert sticky([queue_at(1, 1, 1), queue_at(2, 1, 1)], servers(2)) == {1: 1, 2: 2}


def test_a_queue_asked_for_by_a_server_that_died_stays_with_its_owner() -> None:
    places = [queue_at(1, server=9, owner=2), queue_at(2, server=9, owner=1)]
    assert sticky(places, servers(2)) == {1: 2, 2: 1}


def test_of_those_without_room_the_first_keep_their_server() -> None:
    places = [queue_at(pk, 1, 1) for pk in (1, 2, 3)]
    assert sticky(places, [Member(1, limit=2)]) == {1: 1, 2: 1, 3: None}

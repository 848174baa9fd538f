"""Promises of every strategy."""

from collections import Counter

import pytest
from hypothesis import given

from resourcepool.queues.planning.assignment import Member, Strategy, candidates
from resourcepool.queues.planning.strategies import STRATEGIES
from tests.queues.plans import after, nowhere, queue_at, servers, worlds

pytestmark = pytest.mark.parametrize("plan", STRATEGIES.values(), ids=STRATEGIES)


@given(world=worlds())
def test_every_queue_is_in_the_plan_once_and_with_nobody_who_may_not_have_it(plan: Strategy, world) -> None:
    places, members = world
    targets = plan(places, members)
    assert list(targets) == [place.pk for place in places]
    for place in places:
        assert targets[place.pk] in [None, *(member.pk for member in candidates(place, members))]


@given(world=worlds())
def test_nobody_gets_more_than_its_limit(plan: Strategy, world) -> None:
    given_to = Counter(plan(*world).values())
    assert all(member.limit is None or given_to[member.pk] <= member.limit for member in world[1])


@given(world=worlds())
def test_a_queue_gets_nobody_only_if_all_who_may_have_it_are_full(plan: Strategy, world) -> None:
    places, members = world
    targets = plan(places, members)
    given_to = Counter(targets.values())
    for place in places:
        if targets[place.pk] is None:
            assert all(given_to[member.pk] == member.limit for member in candidates(place, members))


@given(world=worlds())
def test_planning_again_changes_nothing(plan: Strategy, world) -> None:
    places, members = world
    targets = plan(places, members)
    assert plan(after(places, targets), members) == targets


@given(world=worlds())
def test_the_order_of_labels_changes_nothing(plan: Strategy, world) -> None:
    places, members = world
    turned_places = [queue_at(p.pk, p.server, p.cur, dict([*p.labels.items()][::-1]), p.pin) for p in places]
    turned_members = [Member(m.pk, m.name, m.weight, dict([*m.labels.items()][::-1]), m.limit) for m in members]
    assert plan(turned_places, turned_members) == plan(places, members)


def test_without_queues_there_is_nothing_to_plan(plan: Strategy) -> None:
    assert plan([], servers(3)) == {}
    assert plan([], []) == {}


def test_without_servers_nobody_has_anything(plan: Strategy) -> None:
    assert plan([queue_at(1, server=7, owner=7), queue_at(2)], []) == {1: None, 2: None}


def test_more_servers_than_queues_leaves_some_without(plan: Strategy) -> None:
    assert sorted(plan(nowhere(2), servers(4)).values()) == [1, 2]


def test_a_pin_holds_while_a_server_of_that_name_is_there(plan: Strategy) -> None:
    places = [queue_at(1, pin="server-2"), queue_at(2, pin="server-2"), queue_at(3, pin="server-9")]
    targets = plan(places, servers(2))
    assert targets[1] == targets[2] == 2
    assert targets[3] is not None

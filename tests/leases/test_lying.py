"""Rows that look free: which are worth trying, and which those in front leave lying."""

import pytest

from resourcepool.leases.lying import NEAR, PASS_OVER, PATIENCE, PATIENCE_WITH_MANY, STEP, Lying
from resourcepool.leases.search import Glance

MOMENT = 0.001
FIRST = PATIENCE + STEP  # when what lies there is left to the first one behind those who do not take it


def seen(free: dict[int, int], next_in: float | None = None) -> Glance:
    return Glance(free, next_in, 0, False)


def lying_since_0(*pks: int, offered_to: tuple[int, ...] = (100, 101)) -> Lying:
    """Rows under fence 7 that are free, and could be taken by these tickets, since moment 0."""
    lying = Lying()
    lying.note(seen(dict.fromkeys(pks, 7)), now=0)
    lying.offered(offered_to, now=0)
    return lying


def test_what_those_in_front_do_not_take_is_left_to_others_after_a_while() -> None:
    lying = lying_since_0(1)
    lying.note(seen({1: 7}), now=PATIENCE)
    assert lying.asleep({100: [1]}, 0, FIRST - MOMENT) == set()
    assert lying.asleep({100: [1]}, 0, FIRST) == {100}


def test_everybody_counts_from_when_it_came_free_and_not_from_when_it_looked() -> None:
    lying = Lying()
    lying.note(Glance({1: 7}, None, 0, False, {1: PATIENCE / 2}), now=5)
    lying.offered([100], now=5)
    assert lying.asleep({100: [1]}, 0, 5 - PATIENCE / 2 + FIRST - MOMENT) == set()
    assert lying.asleep({100: [1]}, 0, 5 - PATIENCE / 2 + FIRST + MOMENT) == {100}


def test_a_row_that_is_back_in_service_is_left_to_those_in_front_for_a_moment() -> None:
    """Nobody has worked with it for days."""
    lying = Lying()
    lying.note(Glance({1: 7}, None, 0, False, {1: 100_000.0}), now=5)
    lying.offered([100], now=5)
    assert lying.asleep({100: [1]}, 0, 5 + STEP - MOMENT) == set()


def test_the_line_is_looked_at_a_step_before_something_is_left() -> None:
    lying = lying_since_0(1)
    for rank in range(5):
        assert not lying.is_any_left(rank, PATIENCE + rank * STEP - MOMENT)
        assert lying.is_any_left(rank, PATIENCE + rank * STEP + MOMENT)


def test_one_to_whom_an_old_row_has_just_fallen_is_given_the_time_to_take_it() -> None:
    """Those in front of it have been found asleep only now."""
    lying = lying_since_0(1, offered_to=(100,))
    lying.offered([101], now=5)
    assert lying.asleep({101: [1]}, 0, 5 + STEP - MOMENT) == set()
    assert lying.asleep({101: [1]}, 0, 5 + STEP + MOMENT) == {101}


def test_one_who_was_offered_something_long_ago_is_not_taken_for_asleep() -> None:
    lying = lying_since_0(1)
    lying.offered([], now=1)
    lying.offered([100], now=5)
    assert lying.asleep({100: [1]}, 0, 5 + STEP / 2) == set()


def test_what_was_taken_and_freed_meanwhile_is_not_left_lying() -> None:
    lying = lying_since_0(1)
    lying.note(seen({1: 9}), now=PATIENCE)
    assert not lying.is_any_left(0, PATIENCE)
    lying.note(seen({}), now=PATIENCE + 1)
    lying.note(seen({1: 9}), now=PATIENCE + 2)
    assert not lying.is_any_left(0, PATIENCE + 2)
    assert lying.asleep({100: [1]}, 0, PATIENCE + 2) == set()


def test_who_has_collected_several_is_given_more_time_since_it_has_all() -> None:
    lying = lying_since_0(1, 2)
    lying.note(seen({1: 7, 2: 7, 3: 7}), now=5)
    served = {100: [1, 2, 3]}
    assert lying.asleep(served, 0, 5 + FIRST) == set()
    assert lying.asleep(served, 0, 5 + PATIENCE_WITH_MANY + STEP - MOMENT) == set()
    assert lying.asleep(served, 0, 5 + PATIENCE_WITH_MANY + STEP + MOMENT) == {100}


def test_what_could_not_be_had_is_passed_over_ever_longer() -> None:
    lying = Lying()
    lying.note(seen({1: 7, 2: 7, 3: 7}), now=0)
    pauses = []
    for _ in range(6):
        lying.could_not_be_had([2], now=0)
        pauses.append(next(p / 1_000 for p in range(2_000) if 2 in lying.without([1, 2, 3], p / 1_000)))
        assert lying.without([1, 2, 3], 0) == [1, 3]
    assert pauses == pytest.approx([0.01, 0.04, 0.16, 0.64, 1.0, 1.0], abs=0.002)
    assert pauses[-1] == PASS_OVER[1]


def test_what_could_not_be_had_is_tried_at_once_when_it_has_been_taken_and_freed_since() -> None:
    lying = Lying()
    lying.note(seen({1: 7}), now=0)
    lying.could_not_be_had([1], now=0)
    lying.note(seen({1: 7}), now=0)
    assert lying.without([1], 0) == []
    lying.note(seen({1: 9}), now=0)
    assert lying.without([1], 0) == [1]


def test_what_is_taken_is_not_left_lying() -> None:
    lying = lying_since_0(1)
    lying.taken([1])
    assert not lying.is_any_left(0, FIRST)
    assert lying.asleep({100: [1]}, 0, FIRST) == set()


def test_who_stands_further_back_waits_longer_for_it() -> None:
    lying = lying_since_0(1)
    assert lying.asleep({100: [1]}, 2, FIRST + 2 * STEP - MOMENT) == set()
    assert lying.asleep({100: [1]}, 2, FIRST + 2 * STEP + MOMENT) == {100}


def test_what_lies_there_for_long_or_cannot_be_had_is_no_reason_to_look_often() -> None:
    lying = lying_since_0(1, 2)
    assert lying.stirs(0, 0) == 2
    lying.could_not_be_had([2], now=0)
    assert lying.stirs(0, 0) == 1
    assert lying.stirs(0, FIRST) == 2
    assert lying.stirs(0, FIRST + STEP + MOMENT) == 0
    assert lying.stirs(2, FIRST + STEP) == 2
    assert lying.stirs(NEAR * 100, FIRST + (NEAR + 1) * STEP + MOMENT) == 0

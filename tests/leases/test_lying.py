"""Rows that look free: which are worth trying, and which those in front leave lying."""

import pytest

from resourcepool.leases.lying import PASS_OVER, PATIENCE, STEP, Lying
from resourcepool.leases.search import Glance


def seen(free: dict[int, int], next_in: float | None = None) -> Glance:
    return Glance(free, next_in, 0, False)


def test_what_those_in_front_do_not_take_is_left_to_others_after_a_while() -> None:
    lying = Lying()
    lying.note(seen({1: 7}), now=0)
    lying.note(seen({1: 7}), now=PATIENCE - 0.01)
    assert not lying.is_any_left(0, PATIENCE - 0.01)
    assert lying.left_by({100: [1]}, 1, 0, PATIENCE - 0.01) == []
    assert lying.is_any_left(0, PATIENCE)
    assert lying.left_by({100: [1]}, 1, 0, PATIENCE) == [1]


def test_what_was_taken_and_freed_meanwhile_is_not_left_lying() -> None:
    lying = Lying()
    lying.note(seen({1: 7}), now=0)
    lying.note(seen({1: 9}), now=PATIENCE)
    assert not lying.is_any_left(0, PATIENCE)
    lying.note(seen({}), now=PATIENCE + 1)
    lying.note(seen({1: 9}), now=PATIENCE + 2)
    assert not lying.is_any_left(0, PATIENCE + 2)


def test_what_is_kept_for_one_who_waits_for_several_is_not_left_lying() -> None:
    """Its ticket is not served yet, so nobody has been offered the row."""
    lying = Lying()
    lying.note(seen({1: 7}), now=0)
    assert lying.left_by({}, 1, 0, PATIENCE) == []


def test_all_or_nothing_also_of_what_is_left_lying() -> None:
    lying = Lying()
    lying.note(seen({1: 7, 2: 7}), now=0)
    assert lying.left_by({100: [1], 101: [2]}, 3, 0, PATIENCE) == []
    assert sorted(lying.left_by({100: [1], 101: [2]}, 2, 0, PATIENCE)) == [1, 2]


def test_what_a_ticket_for_several_collects_is_left_lying_only_once_it_has_all() -> None:
    lying = Lying()
    lying.note(seen({1: 7, 2: 7}), now=0)
    lying.note(seen({1: 7, 2: 7, 3: 7}), now=5)
    served = {100: [1, 2, 3]}
    assert lying.left_by(served, 1, 0, 5) == []
    assert lying.left_by(served, 1, 0, 5 + PATIENCE - 0.01) == []
    assert lying.left_by(served, 1, 0, 5 + PATIENCE + 0.01) != []


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
    lying = Lying()
    lying.note(seen({1: 7}), now=0)
    lying.taken([1])
    assert not lying.is_any_left(0, PATIENCE)
    assert lying.left_by({100: [1]}, 1, 0, PATIENCE) == []


def test_who_stands_further_back_waits_longer_for_it() -> None:
    lying = Lying()
    lying.note(seen({1: 7}), now=0)
    assert lying.left_by({100: [1]}, 1, 2, PATIENCE + STEP) == []
    assert not lying.is_any_left(2, PATIENCE + STEP)
    assert lying.left_by({100: [1]}, 1, 2, PATIENCE + 2 * STEP) == [1]


def test_what_lies_there_for_long_or_cannot_be_had_is_no_reason_to_look_often() -> None:
    lying = Lying()
    lying.note(seen({1: 7, 2: 7}), now=0)
    assert lying.fresh(0) == 2
    lying.could_not_be_had([2], now=0)
    assert lying.fresh(0) == 1
    assert lying.fresh(PATIENCE) == 0

"""Which tasks may begin: the first of each lane, as long as there are lanes free."""

import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from resourcepool.taskqueue.policy import Choice, TaskSnapshot, choose

SECOND = 1_000_000


def head(pk: int, lane: str = "", state: str = "ready", due_in: int = 0, crashes: int = 0) -> TaskSnapshot:
    return TaskSnapshot(pk, 1, str(pk), "note", "{}", lane, state, 0, 0, crashes, 0, due_in)


def chosen(
    heads: list[TaskSnapshot], in_hand: dict[int, int], free: int = 4, *, by_lane: bool = True
) -> Choice:
    return choose(heads, in_hand, known={"note"}, by_lane=by_lane, free=free, max_crashes=3)


ALL_READY = [head(1, "a"), head(2, "a"), head(3, "b"), head(4, "c"), head(5, "b")]


@pytest.mark.parametrize(
    ("heads", "in_hand", "free", "begin"),
    [
        ([], [], 4, []),
        (ALL_READY, [], 4, [1, 3, 4]),
        (ALL_READY, [], 2, [1, 3]),
        (ALL_READY, [], 0, []),
        (ALL_READY, [1], 4, [3, 4]),
        (ALL_READY, [1, 3, 4], 1, []),
        ([head(1, "a", "blocked"), head(2, "a"), head(3, "b")], [], 4, [3]),
        ([head(1, "a", due_in=1), head(2, "a"), head(3, "b")], [], 4, [3]),
        ([head(1, "a", due_in=0), head(2, "b", due_in=-SECOND)], [], 4, [1, 2]),
        ([head(1, ""), head(2, "a"), head(3, "")], [], 4, [1, 2]),
    ],
)
def test_of_each_lane_the_first_task_begins_if_nothing_holds_it_up(
    heads: list[TaskSnapshot], in_hand: list[int], free: int, begin: list[int]
) -> None:
    choice = chosen(heads, dict.fromkeys(in_hand, 0), free)
    assert [task.pk for task in choice.begin] == begin


def test_in_a_strict_stream_only_the_first_of_all_may_begin() -> None:
    for heads, in_hand, begin in (
        (ALL_READY, {}, [1]),
        (ALL_READY, {1: 0}, []),
        ([head(1, "a", "blocked"), head(2, "b")], {}, []),
        ([head(1, "a", due_in=1), head(2, "b")], {}, []),
    ):
        choice = chosen(heads, in_hand, 1, by_lane=False)
        assert [task.pk for task in choice.begin] == begin


def test_a_lane_whose_first_task_has_no_handler_here_waits_for_as_long_as_another_process_takes() -> None:
    choice = choose([head(1, "a"), head(2, "a")], {}, max_crashes=3, known=set(), by_lane=True, free=4)
    assert choice.waits == {"a": math.inf}
    assert [task.pk for task in choice.without_handler] == [1]
    put_aside = head(1, "a", crashes=3)
    assert choose([put_aside], {}, max_crashes=3, known=set(), by_lane=True, free=4).begin == [put_aside]


def test_a_lane_that_has_to_wait_says_for_how_long() -> None:
    heads = [head(1, "running"), head(2, "blocked", "blocked"), head(3, "later", due_in=3 * SECOND // 2)]
    assert chosen(heads, {1: 0}).waits == {
        "running": math.inf,
        "blocked": math.inf,
        "later": 1.5,
    }
    assert chosen(heads[2:], {}, 1, by_lane=False).waits == {"": 1.5}
    assert chosen(ALL_READY, {}, 1).waits == {}, "a lane that is only not free has not to wait"


def test_a_task_that_a_leader_of_an_earlier_term_runs_is_begun_anew() -> None:
    left = head(1, "a", "running", due_in=3_600 * SECOND)
    assert chosen([left], {}, 1).begin == [left]


@pytest.mark.parametrize(
    ("heads", "in_hand", "begin"),
    [
        ([head(1, "a", crashes=1), head(2, "b"), head(3, "c")], {}, [1]),
        ([head(1, "a", crashes=1), head(2, "b")], {9: 0}, []),
        ([head(1, "a"), head(2, "b")], {9: 1}, []),
        ([head(1, "a"), head(2, "b", crashes=1), head(3, "c")], {}, [1]),
        ([head(1, "a"), head(2, "b", crashes=2), head(3, "c", crashes=1)], {}, [1]),
        ([head(1, "a", crashes=1, due_in=1), head(2, "b")], {9: 0}, [2]),
        ([head(1, "a", "blocked", crashes=1), head(2, "b")], {9: 0}, [2]),
        ([head(1, "a"), head(2, "a", crashes=1), head(3, "b")], {}, [1, 3]),
        ([head(1, "a", crashes=3), head(2, "b"), head(3, "c", crashes=4)], {9: 0}, [1, 2, 3]),
        ([head(1, "a", "running", crashes=1), head(2, "b")], {}, [1]),
    ],
)
def test_a_task_whose_process_has_died_begins_alone_and_nothing_begins_beside_it(
    heads: list[TaskSnapshot], in_hand: dict[int, int], begin: list[int]
) -> None:
    choice = chosen(heads, in_hand)
    assert [task.pk for task in choice.begin] == begin


def test_a_lane_that_waits_for_a_task_that_runs_alone_is_not_passed_over_for_long() -> None:
    heads = [head(1, "a", crashes=1), head(2, "b"), head(3, "c", due_in=SECOND)]
    assert chosen(heads, {9: 0}) == ([], {"c": 1.0}, [])


TASKS = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3)), max_size=12)


@given(TASKS, st.integers(1, 4), st.booleans(), st.randoms(use_true_random=False))
def test_whatever_is_there_and_ends_when_it_likes_every_task_comes_to_its_turn_in_order(
    tasks: list[tuple[str, int]], lanes: int, by_lane: bool, chance: Any
) -> None:
    left = [head(pk, lane, crashes=crashes) for pk, (lane, crashes) in enumerate(tasks)]
    in_hand: dict[int, int] = {}
    begun: list[TaskSnapshot] = []
    while left:
        free = (lanes if by_lane else 1) - len(in_hand)
        choice = chosen(left, in_hand, free, by_lane=by_lane).begin
        lanes_in_hand = {tasks[pk][0] for pk in in_hand}
        first = next((one for one in left if by_lane and one.lane not in lanes_in_hand), None)
        if in_hand and first is not None and 0 < first.crashes < 3:
            assert not choice, "else the first one would never be alone"
        begun += choice
        in_hand |= {one.pk: one.crashes for one in choice if one.crashes < 3}
        left = [one for one in left if one.crashes < 3 or one not in choice]  # put aside without being run
        assert in_hand or choice or not left, "nothing would ever begin"
        assert len(in_hand) <= 1 or not any(in_hand.values())
        if in_hand:
            ended = chance.choice(sorted(in_hand))
            del in_hand[ended]
            left = [one for one in left if one.pk != ended]
    assert sorted(one.pk for one in begun) == list(range(len(tasks)))
    for lane in "abcd":
        order = [one.pk for one in begun if one.lane == lane or not by_lane]
        assert order == sorted(order)

"""Which tasks may begin: the first of each lane, as long as there are lanes free."""

import math

import pytest

from resourcepool.taskqueue.order import Head, choose

SECOND = 1_000_000


def head(pk: int, lane: str = "", state: str = "ready", due_in: int = 0) -> Head:
    return Head(pk, 1, str(pk), "note", "{}", lane, state, 0, 0, 0, 0, due_in)


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
    heads: list[Head], in_hand: list[int], free: int, begin: list[int]
) -> None:
    choice = choose(heads, in_hand, by_lane=True, free=free)
    assert [task.pk for task in choice.begin] == begin


@pytest.mark.parametrize(
    ("heads", "in_hand", "begin"),
    [
        (ALL_READY, [], [1]),
        (ALL_READY, [1], []),
        ([head(1, "a", "blocked"), head(2, "b")], [], []),
        ([head(1, "a", due_in=1), head(2, "b")], [], []),
    ],
)
def test_in_a_strict_stream_only_the_first_of_all_may_begin(
    heads: list[Head], in_hand: list[int], begin: list[int]
) -> None:
    choice = choose(heads, in_hand, by_lane=False, free=1)
    assert [task.pk for task in choice.begin] == begin


def test_a_lane_that_has_to_wait_says_for_how_long() -> None:
    heads = [head(1, "running"), head(2, "blocked", "blocked"), head(3, "later", due_in=3 * SECOND // 2)]
    assert choose(heads, [1], by_lane=True, free=4).waits == {
        "running": math.inf,
        "blocked": math.inf,
        "later": 1.5,
    }
    assert choose(heads[2:], [], by_lane=False, free=1).waits == {"": 1.5}
    assert choose(ALL_READY, [], by_lane=True, free=1).waits == {}, (
        "a lane that is only not free has not to wait"
    )


def test_a_task_that_a_leader_of_an_earlier_term_runs_is_begun_anew() -> None:
    left = head(1, "a", "running", due_in=3_600 * SECOND)
    assert choose([left], [], by_lane=True, free=1).begin == [left]

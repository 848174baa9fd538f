"""How soon a waiter looks again: arithmetic on moments that are passed in."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcepool.leases.pace import LONGEST, PER_PLACE, SHORTEST, Pace


def pauses(pace: Pace, now: float = 0.0, next_in: float | None = None) -> list[float]:
    return [pace.pause(now, next_in) for _ in range(60)]


def test_the_first_in_line_looks_at_once_and_ever_less_often_while_nothing_moves() -> None:
    pace = Pace()
    pace.joined(0, now=0)
    seen = pauses(pace)
    assert seen[0] == SHORTEST
    assert all(later >= earlier for earlier, later in itertools.pairwise(seen))
    assert seen[-1] == LONGEST


def test_something_that_came_free_makes_it_look_often_again() -> None:
    pace = Pace()
    pace.joined(0, now=0)
    pauses(pace)
    pace.stirred(1)
    assert pace.pause(0, None) == SHORTEST


def test_nobody_sleeps_past_the_nearest_expiry() -> None:
    pace = Pace()
    pace.joined(0, now=0)
    assert max(pauses(pace, next_in=0.1)) == pytest.approx(0.1)


def test_those_far_back_look_less_often() -> None:
    near, far = Pace(), Pace()
    near.joined(0, now=0)
    far.joined(100, now=0)
    assert max(pauses(near)) == LONGEST
    assert max(pauses(far)) == pytest.approx(LONGEST + 100 * PER_PLACE)


def test_those_far_back_sleep_until_they_expect_to_be_near_the_front() -> None:
    pace = Pace()
    pace.joined(51, now=0)
    pace.advanced(50, now=0.1)  # a tenth of a second a place
    assert pace.pause(0.1, None) == pytest.approx(LONGEST + 50 * PER_PLACE)
    pace.advanced(10, now=4.1)
    assert 0.3 < pace.pause(4.1, None) <= LONGEST + 10 * PER_PLACE


def test_those_who_may_be_served_soon_because_much_is_free_do_not_sleep() -> None:
    pace = Pace()
    pace.joined(61, now=0)
    pace.advanced(60, now=0.01)
    pace.stirred(3)
    assert pace.pause(0.01, None) == pytest.approx(0.8 * 0.57)
    pace.stirred(60)
    assert pace.pause(0.01, None) <= 0.008


def test_a_place_that_moves_back_is_no_progress() -> None:
    pace = Pace()
    pace.joined(3, now=0)
    pace.advanced(5, now=1)
    assert pace.pause(1, None) == SHORTEST


moments = st.floats(0, 1e6)
events = st.lists(
    st.one_of(
        st.tuples(st.just("joined"), st.integers(0, 2_000)),
        st.tuples(st.just("advanced"), st.integers(-1, 2_000)),
        st.tuples(st.just("stirred"), st.integers(0, 1_000)),
    ),
    max_size=20,
)


@given(events, st.lists(moments, min_size=21, max_size=21).map(sorted), st.none() | st.floats(0, 100))
def test_a_pause_is_never_shorter_or_longer_than_it_may_be(
    history: list[tuple[str, ...]], clock: list[float], next_in: float | None
) -> None:
    pace = Pace()
    for (name, *args), now in zip(history, clock, strict=False):
        getattr(pace, name)(*args, *([] if name == "stirred" else [now]))
    pause = pace.pause(clock[-1], next_in)
    assert SHORTEST <= pause <= LONGEST + PER_PLACE * 2_000
    if next_in is not None:
        assert pause <= max(SHORTEST, next_in)

"""How soon a waiter looks again: pure arithmetic, in seconds."""

import pytest

from resourcepool.waiting.backoff import (
    HINTED,
    LATEST_FIRST,
    PAUSE,
    SHORTEST,
    SLOW,
    Backoff,
    pause,
    slow_pause,
)

LONG = 60.0  # a row that is given lasts long enough


def learned(*waits: float) -> Backoff:
    backoff = Backoff()
    for waited in waits:
        backoff.served(waited)
    return backoff


class TestTheFirstLook:
    def test_is_almost_at_once_where_nothing_is_known(self) -> None:
        assert learned().first_pause(hinted=False) == SHORTEST

    def test_comes_shortly_before_the_others_were_served(self) -> None:
        evenly = learned(*[0.3] * 50)
        assert 0.25 < evenly.first_pause(hinted=False) <= 0.3

    def test_comes_the_earlier_the_less_alike_the_waits_were(self) -> None:
        evenly, unevenly = learned(*[0.3] * 50), learned(*[0.2, 0.4] * 25)
        assert unevenly.first_pause(hinted=False) < evenly.first_pause(hinted=False)

    def test_is_soon_after_one_wait_because_that_tells_little(self) -> None:
        assert learned(0.3).first_pause(hinted=False) < 0.1

    def test_is_never_later_than_half_a_second(self) -> None:
        assert learned(*[90.0] * 100).first_pause(hinted=False) == LATEST_FIRST

    def test_is_left_to_hints_where_they_have_been_arriving(self) -> None:
        assert learned(*[0.01] * 50).first_pause(hinted=True) == HINTED[0]
        assert learned(*[0.4] * 50).first_pause(hinted=True) > HINTED[0]

    def test_follows_waits_that_get_longer(self) -> None:
        assert learned(*[0.01] * 50, *[0.3] * 50).first_pause(hinted=False) > 0.2


class TestThePauseBetweenLooks:
    def test_is_short_for_who_has_only_come(self) -> None:
        for near in (True, False, None):
            assert pause(0.0, near=near, hinted=False, lasts=LONG) == PAUSE

    def test_grows_with_the_wait_and_is_longer_for_who_stands_further_back(self) -> None:
        for waited in (1.0, 5.0, 100.0):
            near, far = (pause(waited, near=near, hinted=False, lasts=LONG) for near in (True, False))
            assert PAUSE < near < far
        assert pause(1.0, near=True, hinted=False, lasts=LONG) < pause(5.0, near=True, hinted=False, lasts=LONG)

    @pytest.mark.parametrize(
        ("near", "hinted", "most"), [(True, False, 0.2), (False, False, 1.0), (None, False, 0.2)]
    )
    def test_has_an_end_however_long_the_wait(self, near: bool | None, hinted: bool, most: float) -> None:
        assert pause(3_600.0, near=near, hinted=hinted, lasts=LONG) == most

    def test_is_longer_where_hints_have_been_arriving(self) -> None:
        assert pause(0.0, near=True, hinted=True, lasts=LONG) == HINTED[0]
        assert pause(3_600.0, near=True, hinted=True, lasts=LONG) == HINTED[2]

    @pytest.mark.parametrize("hinted", [True, False])
    def test_never_takes_so_long_that_what_was_given_could_run_out_unseen(self, hinted: bool) -> None:
        for waited in (0.0, 1.0, 3_600.0):
            assert pause(waited, near=False, hinted=hinted, lasts=0.1) <= 0.1 / 4


def test_looks_at_free_rows_get_rare_but_never_stop() -> None:
    assert slow_pause(0.0) == SLOW[0]
    assert SLOW[0] < slow_pause(5.0) < SLOW[2]
    assert slow_pause(3_600.0) == SLOW[2]

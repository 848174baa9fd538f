"""When a waiter looks at its ticket, and what a process remembers of a line."""

import pytest

from resourcepool.waiting import pacing
from resourcepool.waiting.pacing import (
    EMPTY_FOR,
    FIRST_IN_LINE,
    LONGEST,
    MEASURED_OVER,
    REMEMBERED,
    SCAN,
    SHORTEST,
    Pacing,
    pacing_of,
    pause,
    scan_pause,
)

NOW = 1_000.0


def moving(per_second: float, waits: float = 60.0) -> Pacing:
    """Return what a process knows of a line in which so many tickets are served per second; the last one is 1000."""
    line = Pacing()
    line.served(waits, NOW, was_woken=False)
    line.served(waits, NOW, was_woken=False)
    for step in (2, 1, 0):
        line.given(1_000 - int(per_second * MEASURED_OVER) * step, NOW - MEASURED_OVER * step)
    return line


class TestTheFirstLook:
    def test_comes_at_once_where_nothing_is_known(self) -> None:
        assert Pacing().first_look(5, NOW) == SHORTEST

    def test_comes_shortly_before_the_ticket_will_probably_be_served(self) -> None:
        line = moving(100)
        assert line.per_second == pytest.approx(100)
        assert 0.9 < line.first_look(1_100, NOW) < 1.0

    def test_comes_earlier_for_a_near_ticket_because_its_turn_is_less_certain(self) -> None:
        line = moving(100)
        assert line.first_look(1_001, NOW) == SHORTEST
        assert line.first_look(1_004, NOW) < 0.75 * 4 / 100

    def test_counts_what_was_probably_served_since(self) -> None:
        assert moving(100).first_look(1_100, NOW + 0.5) < 0.5

    def test_comes_no_later_than_recent_waits_took(self) -> None:
        """In a line with few waiters the estimate is too long."""
        line = moving(100, waits=0.1)
        assert line.first_look(2_000, NOW) < 0.15

    def test_of_a_line_that_stood_still_comes_at_once(self) -> None:
        assert moving(100).first_look(1_100, NOW + REMEMBERED) == SHORTEST

    def test_comes_later_where_waiters_are_woken_in_time(self) -> None:
        line = moving(100)
        polled = line.first_look(1_050, NOW)
        line.served(60, NOW, was_woken=True)
        assert line.first_look(1_050, NOW) > polled
        line.served(60, NOW, was_woken=False)
        assert line.first_look(1_050, NOW) == pytest.approx(polled)

    def test_comes_soon_enough_for_a_row_that_is_granted_for_seconds(self) -> None:
        assert moving(5).first_look(10_000, NOW) <= LONGEST


class TestHowManyAreAhead:
    def test_is_unknown_in_a_line_that_does_not_move(self) -> None:
        assert Pacing().ahead(5, NOW) is None
        assert moving(100).ahead(1_001, NOW + REMEMBERED) is None

    def test_is_the_distance_to_the_ticket_that_was_served_last(self) -> None:
        assert moving(100).ahead(1_100, NOW) == pytest.approx(100)

    def test_counts_what_was_probably_served_since(self) -> None:
        assert moving(100).ahead(1_100, NOW + 0.5) == pytest.approx(50)


class TestTheNextLook:
    @pytest.mark.parametrize("is_near", [True, False])
    def test_comes_after_a_share_of_the_wait_within_bounds(self, is_near: bool) -> None:
        assert pause(0.0, is_near=is_near, grant_seconds=60) == SHORTEST
        assert pause(3_600.0, is_near=is_near, grant_seconds=60) <= LONGEST
        assert pause(10.0, is_near=is_near, grant_seconds=60) <= LONGEST

    def test_comes_sooner_for_the_first_in_line(self) -> None:
        assert pause(10.0, is_near=True, grant_seconds=60) < pause(10.0, is_near=False, grant_seconds=60)

    def test_comes_before_a_granted_row_expires(self) -> None:
        assert pause(3_600.0, is_near=False, grant_seconds=1) == 1 / 3

    def test_for_free_rows_grows_with_the_wait(self) -> None:
        assert scan_pause(0.0) == SCAN < scan_pause(10.0) < scan_pause(1_000.0)


class TestItIsRemembered:
    def test_that_nobody_waits_for_a_moment_from_when_it_was_asked(self) -> None:
        line = Pacing()
        assert line.empty_until < NOW
        line.found_none(NOW)
        assert line.empty_until == NOW + EMPTY_FOR

    def test_not_after_a_recent_wait(self) -> None:
        line = Pacing()
        line.found_none(NOW)
        line.found_waiters(NOW)
        assert line.empty_until < NOW < line.awaited_until

    def test_not_if_a_waiter_arrived_after_the_question(self) -> None:
        line = Pacing()
        line.found_waiters(NOW + 0.01)
        line.found_none(NOW)
        assert line.empty_until < NOW

    def test_that_a_caller_had_to_wait_until_one_finds_free_rows(self) -> None:
        line = Pacing()
        line.served(0.1, NOW, was_woken=False)
        assert line.waits_until == NOW + REMEMBERED
        line.found_free()
        assert line.waits_until < NOW

    def test_that_several_wait_only_if_a_release_saw_them(self) -> None:
        line = Pacing()
        line.found_line(FIRST_IN_LINE - 1, NOW)
        assert line.crowded_until < NOW
        line.found_line(FIRST_IN_LINE, NOW)
        assert line.crowded_until == NOW + EMPTY_FOR

    def test_for_each_line_on_each_database(self) -> None:
        line = pacing_of("proxies", "default")
        assert line is pacing_of("proxies", "default")
        assert line is not pacing_of("proxies", "another")
        assert line is not pacing_of("devices", "default")

    def test_of_a_limited_number_of_lines(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pacing, "MAX_LINES", 2)
        pacing._lines.clear()
        first = pacing_of("a", "default")
        for name in "bc":
            pacing_of(name, "default")
        assert pacing_of("a", "default") is not first

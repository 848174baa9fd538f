"""The intervals of checks and scans: pure arithmetic, in seconds; times are passed in."""

import pytest

from resourcepool.waiting.estimates import (
    DISCARDED_AFTER,
    FAST_LINE_SCAN_DELAY,
    FIRST_SCAN_DELAY,
    MAX_FIRST_CHECK,
    MAX_SCANS_PER_SECOND,
    MEASURED_OVER,
    MIN_CHECK_INTERVAL,
    MIN_FIRST_CHECK,
    SCAN_INTERVAL,
    WaitEstimate,
    pause,
    scan_interval,
)

LONG = 60.0  # a row that is given lasts long enough


def moved(a_second: float, until: float = 10.0, last: int = 1_000) -> WaitEstimate:
    """Return the estimate at time ``until``, if ``a_second`` tickets per second were served, the last one ``last``."""
    speed = WaitEstimate()
    speed.note_wait(LONG)
    for ago in range(round(a_second * 5), -1, -1):
        speed.served(last - ago, until - ago / a_second)
    return speed


class TestTheFirstLook:
    def test_is_almost_at_once_where_nothing_is_known(self) -> None:
        assert WaitEstimate().first_check_delay(7, 10.0) == MIN_FIRST_CHECK

    def test_is_almost_at_once_where_only_one_was_served_because_that_tells_nothing(self) -> None:
        speed = WaitEstimate()
        speed.served(5, 10.0)
        assert speed.first_check_delay(7, 10.0) == MIN_FIRST_CHECK

    def test_comes_shortly_before_the_line_gets_there(self) -> None:
        assert 0.25 < moved(1_000.0).first_check_delay(1_400, 10.0) < 0.4

    def test_comes_the_earlier_compared_with_the_wait_the_fewer_stand_in_front(self) -> None:
        """The estimate is least certain for few tickets."""
        speed = moved(1_000.0)
        few, many = speed.first_check_delay(1_010, 10.0) / 0.010, speed.first_check_delay(1_090, 10.0) / 0.090
        assert few < 0.85 < many < 1

    def test_comes_early_where_the_line_is_slow_or_it_would_stay_so(self) -> None:
        """Otherwise rows idle while their waiters sleep until the estimated time."""
        assert moved(100.0).first_check_delay(1_090, 10.0) < 0.7 * 0.90

    def test_is_almost_at_once_for_the_next(self) -> None:
        assert moved(10.0).first_check_delay(1_001, 10.0) == MIN_FIRST_CHECK

    def test_reckons_that_the_line_has_moved_on_since_the_last_one_was_served(self) -> None:
        speed = moved(100.0)
        assert speed.first_check_delay(1_090, 10.5) == pytest.approx(speed.first_check_delay(1_040, 10.0))
        assert speed.first_check_delay(1_090, 11.5) == MIN_FIRST_CHECK, "it should have been its turn already"

    def test_is_never_later_than_a_second(self) -> None:
        assert moved(10.0).first_check_delay(5_000, 10.0) == MAX_FIRST_CHECK

    def test_is_soon_where_waits_are_short_however_many_tickets_there_are_at_once(self) -> None:
        speed = moved(10.0)
        for _ in range(20):
            speed.note_wait(0.002)
        assert speed.first_check_delay(5_000, 10.0) < 0.01
        speed.note_wait(0.1)
        assert 0.04 < speed.first_check_delay(5_000, 10.0) < 0.1

    def test_is_earlier_after_late_checks_or_waits_would_grow(self) -> None:
        speed = moved(10.0)
        for _ in range(20):
            speed.note_wait(0.4)
        late = speed.first_check_delay(5_000, 10.0)
        for _ in range(20):  # each is given something a while before its first look
            speed.note_wait(0.9 * speed.first_check_delay(5_000, 10.0))
        assert speed.first_check_delay(5_000, 10.0) < 0.5 * late

    def test_is_soon_without_measured_waits(self) -> None:
        speed = WaitEstimate()
        for number in range(50):
            speed.served(number, 10.0 + number / 10)
        assert speed.first_check_delay(5_000, 15.0) < 0.1

    def test_is_later_where_wakeups_arrive_in_time(self) -> None:
        speed = moved(1_000.0)
        early = speed.first_check_delay(1_090, 10.0)
        for _ in range(30):
            speed.note_wakeup(was_woken=True)
        assert early + 0.01 < speed.first_check_delay(1_090, 10.0) < 1.4 * early + 0.01
        for _ in range(30):
            speed.note_wakeup(was_woken=False)
        assert speed.first_check_delay(1_090, 10.0) < early + 0.002

    def test_is_almost_immediate_after_a_while_without_service(self) -> None:
        speed = moved(100.0)
        assert speed.first_check_delay(1_500, 10.0 + DISCARDED_AFTER + 0.1) == MIN_FIRST_CHECK


class TestFreeRows:
    def test_are_scanned_by_every_new_caller_if_the_line_is_slow_or_unknown(self) -> None:
        for speed in (WaitEstimate(), moved(MAX_SCANS_PER_SECOND / 2)):
            assert (speed.scan_probability, speed.first_scan_delay(10.0)) == (1.0, FIRST_SCAN_DELAY)

    def test_are_scanned_by_a_limited_number_per_second_in_a_fast_line(self) -> None:
        speed = moved(8 * MAX_SCANS_PER_SECOND)
        assert speed.scan_probability == pytest.approx(1 / 8, rel=0.01)
        assert speed.first_scan_delay(10.0) == FAST_LINE_SCAN_DELAY

    def test_are_scanned_soon_where_a_fast_line_has_stopped(self) -> None:
        assert moved(8 * MAX_SCANS_PER_SECOND).first_scan_delay(10.0 + MEASURED_OVER + 0.01) == FIRST_SCAN_DELAY


class TestTheSpeed:
    def test_follows_a_line_that_gets_slower(self) -> None:
        speed = moved(1_000.0)
        before = speed.first_check_delay(1_100, 10.0)
        for number in range(1, 21):
            speed.served(1_000 + number * 5, 10.0 + number * MEASURED_OVER)
        assert speed.first_check_delay(1_200, 10.0 + 20 * MEASURED_OVER) > 5 * before

    def test_is_not_measured_over_a_moment_because_several_are_served_at_once(self) -> None:
        speed = WaitEstimate()
        for ticket in range(100):
            speed.served(ticket, 10.0 + ticket / 1_000_000)
        assert speed.first_check_delay(500, 10.1) == MIN_FIRST_CHECK, "still nothing is known"

    def test_is_measured_again_after_a_while_without_waiters(self) -> None:
        speed = moved(1_000.0)
        speed.served(2_000, 10.0 + DISCARDED_AFTER + 0.1)
        assert speed.first_check_delay(2_500, 10.0 + DISCARDED_AFTER + 0.1) == MIN_FIRST_CHECK
        speed.served(2_010, 10.3 + DISCARDED_AFTER + 0.1)
        assert speed.first_check_delay(2_500, 10.3 + DISCARDED_AFTER + 0.1) == MAX_FIRST_CHECK

    def test_ignores_a_waiter_that_is_served_late(self) -> None:
        """It was overtaken by tickets with a better priority."""
        speed = moved(100.0)
        before = speed.first_check_delay(1_090, 10.0)
        speed.served(17, 10.0)
        assert speed.first_check_delay(1_090, 10.0) == before

    def test_is_measured_again_if_the_numbers_restart(self) -> None:
        speed = moved(100.0)
        later = 10.0 + DISCARDED_AFTER + 0.1
        speed.served(1, later)
        speed.served(11, later + 1)
        assert speed.first_check_delay(15, later + 1) == pytest.approx(0.22, abs=0.02)


class TestThePauseBetweenLooks:
    def test_is_short_for_a_new_waiter(self) -> None:
        for near in (True, False, None):
            assert pause(0.0, near=near, grant_seconds=LONG) == MIN_CHECK_INTERVAL

    def test_grows_with_the_wait_and_is_longer_further_back(self) -> None:
        for waited in (1.0, 5.0, 100.0):
            near, far = (pause(waited, near=near, grant_seconds=LONG) for near in (True, False))
            assert MIN_CHECK_INTERVAL < near < far
        assert pause(1.0, near=True, grant_seconds=LONG) < pause(5.0, near=True, grant_seconds=LONG)

    @pytest.mark.parametrize(("near", "most"), [(True, 0.2), (False, 1.0), (None, 0.2)])
    def test_has_an_end_however_long_the_wait(self, near: bool | None, most: float) -> None:
        assert pause(3_600.0, near=near, grant_seconds=LONG) == most

    def test_is_never_so_long_that_a_grant_could_expire_unseen(self) -> None:
        for waited in (0.0, 1.0, 3_600.0):
            assert pause(waited, near=False, grant_seconds=0.1) <= 0.1 / 4


def test_looks_at_free_rows_get_rare_but_never_stop() -> None:
    assert scan_interval(0.0) == SCAN_INTERVAL[0]
    assert SCAN_INTERVAL[0] < scan_interval(5.0) < SCAN_INTERVAL[2]
    assert scan_interval(3_600.0) == SCAN_INTERVAL[2]

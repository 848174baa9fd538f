"""The occurrences of recurring timers: intervals, crontabs, daylight saving time and missed ones."""

import datetime
from typing import Any

import pytest

from resourcepool.exceptions import BadOption
from resourcepool.taskqueue.timers.occurrences import MAX_MISSED, Cron, Every, cron, every, occurrence, read

UTC = datetime.UTC
NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = datetime.timedelta(minutes=1)


def utc(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=UTC)


def follow(schedule: Any, start: str, count: int) -> list[str]:
    found, moment = [], utc(start)
    for _ in range(count):
        moment = schedule.after(moment)
        found.append(moment.strftime("%d %H:%M"))
    return found


def test_an_interval_is_counted_from_the_last_due_moment() -> None:
    assert every(90).after(NOON) == NOON + 1.5 * MINUTE
    assert every(datetime.timedelta(hours=1)).after(NOON) == NOON + 60 * MINUTE


def test_a_crontab_is_in_utc_unless_a_zone_is_given() -> None:
    assert follow(cron("30 2 * * *", "UTC"), "2026-01-01 02:30", 2) == ["02 02:30", "03 02:30"]
    assert follow(cron("30 2 * * *", "Asia/Shanghai"), "2026-01-01 00:00", 1) == ["01 18:30"]
    assert follow(cron("0 12 L * *", "UTC"), "2026-02-01 00:00", 1) == ["28 12:00"]


@pytest.mark.parametrize(
    ("shorthand", "first"),
    [
        ("@hourly", "2026-02-03 05:00"),
        ("@daily", "2026-02-04 00:00"),
        ("@midnight", "2026-02-04 00:00"),
        ("@weekly", "2026-02-08 00:00"),  # a Sunday
        ("@monthly", "2026-03-01 00:00"),
        ("@yearly", "2027-01-01 00:00"),
        ("@annually", "2027-01-01 00:00"),
    ],
)
def test_the_shorthands_of_crontabs_are_understood(shorthand: str, first: str) -> None:
    assert cron(shorthand, "UTC").after(utc("2026-02-03 04:05")) == utc(first)


@pytest.mark.parametrize("unknown", ["@reboot", "@every 5m", "@DAILY", "@"])
def test_other_words_are_refused_and_the_shorthands_named(unknown: str) -> None:
    with pytest.raises(BadOption, match="or @hourly, @daily, @weekly, @monthly, @yearly"):
        cron(unknown, "UTC")


def test_microseconds_neither_repeat_an_occurrence_nor_leave_one_out() -> None:
    each = cron("* * * * *", "UTC")
    assert each.after(NOON.replace(microsecond=1)) == NOON + MINUTE
    assert each.after(NOON - datetime.timedelta(microseconds=1)) == NOON


# Berlin: on 2026-03-29 the clock goes from 02:00 to 03:00, on 2026-10-25 from 03:00 back to 02:00.


def test_what_is_due_in_the_hour_that_is_left_out_fires_once_right_after_it() -> None:
    berlin = cron("30 2 * * *", "Europe/Berlin")
    assert follow(berlin, "2026-03-28 00:00", 3) == ["28 01:30", "29 01:00", "30 00:30"]
    several = cron("0,30 2,3 * * *", "Europe/Berlin")
    assert follow(several, "2026-03-28 23:00", 3) == ["29 01:00", "29 01:30", "30 00:00"]


def test_a_fixed_time_in_the_hour_that_comes_twice_fires_once() -> None:
    berlin = cron("30 2 * * *", "Europe/Berlin")
    assert follow(berlin, "2026-10-24 12:00", 2) == ["25 00:30", "26 01:30"]


def test_one_that_is_set_in_the_second_of_the_two_hours_is_not_due_in_the_first() -> None:
    berlin = cron("30 2 * * *", "Europe/Berlin")
    assert follow(berlin, "2026-10-25 01:10", 1) == ["26 01:30"]


def test_each_hour_and_each_minute_go_on_through_both_changes() -> None:
    hourly = cron("15 * * * *", "Europe/Berlin")
    assert follow(hourly, "2026-03-29 00:00", 3) == ["29 00:15", "29 01:15", "29 02:15"]
    assert follow(hourly, "2026-10-25 00:00", 3) == ["25 00:15", "25 01:15", "25 02:15"]
    assert follow(every(3_600), "2026-10-25 00:00", 2) == ["25 01:00", "25 02:00"]


def test_no_crontab_ever_goes_back() -> None:
    for fields in ("*/7 * * * *", "5,50 1-3 * * *", "0 */2 * * 0", "59 2 29 3 *", "1 2 * 10 *", "*/20 2 * * *"):
        for zone in ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"):
            schedule, moment = cron(fields, zone), utc("2026-03-01 00:00")
            for _ in range(300):
                following = schedule.after(moment)
                assert following is not None
                assert following > moment
                moment = following


@pytest.mark.parametrize(
    "fields", ["", "* * * *", "* * * * * *", "61 * * * *", "* * * * foo", "a b c d e", "0 0 31 2 *", None, 5]
)
def test_a_crontab_that_is_none_is_refused_with_what_is_allowed(fields: Any) -> None:
    with pytest.raises(BadOption, match="five fields: minute 0-59"):
        cron(fields, "UTC")


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "/etc/passwd", "Europe", "../x", None, 7])
def test_an_unknown_zone_is_refused(zone: Any) -> None:
    with pytest.raises(BadOption, match="the name of a time zone"):
        cron("* * * * *", zone)


@pytest.mark.parametrize("value", [0, 0.5, -1, float("nan"), float("inf"), "60", True, 10**12])
def test_an_interval_of_less_than_a_second_is_refused(value: Any) -> None:
    with pytest.raises(BadOption, match="every"):
        every(value)


@pytest.mark.parametrize("schedule", [Every(90.0), Cron("30 2 * * *", "Europe/Berlin")])
def test_a_schedule_is_read_as_it_was_kept(schedule: Any) -> None:
    assert read(schedule.text()) == schedule
    assert read("") is None


def test_one_that_fires_once_is_over_then() -> None:
    assert occurrence(None, "once", NOON, NOON + 90 * MINUTE) == (True, 0, None)


@pytest.mark.parametrize("catch_up", ["once", "all", "skip"])
@pytest.mark.parametrize("schedule", [Every(60.0), Cron("* * * * *", "UTC")])
def test_one_that_is_in_time_fires_and_the_next_one_follows(schedule: Any, catch_up: str) -> None:
    late = datetime.timedelta(seconds=59)
    assert occurrence(schedule, catch_up, NOON, NOON + late) == (True, 0, NOON + MINUTE)


@pytest.mark.parametrize("schedule", [Every(60.0), Cron("* * * * *", "UTC")])
def test_those_that_were_missed_fire_together_one_by_one_or_not_at_all(schedule: Any) -> None:
    now = NOON + 10.5 * MINUTE
    assert occurrence(schedule, "once", NOON, now) == (True, 10, NOON + 11 * MINUTE)
    assert occurrence(schedule, "all", NOON, now) == (True, 0, NOON + MINUTE)
    assert occurrence(schedule, "skip", NOON, now) == (False, 0, NOON + 11 * MINUTE)


def test_one_that_has_begun_before_is_not_skipped() -> None:
    now = NOON + 10.5 * MINUTE
    assert occurrence(Every(60.0), "skip", NOON, now, is_retry=True) == (True, 10, NOON + 11 * MINUTE)


def test_after_years_an_interval_is_found_at_once_and_a_crontab_is_not_counted_for_long() -> None:
    now = NOON + datetime.timedelta(days=3_650)
    fires, missed, following = occurrence(Every(1.0), "once", NOON, now)
    assert (fires, missed, following) == (True, 3_650 * 86_400, now + datetime.timedelta(seconds=1))
    assert occurrence(Cron("* * * * *", "UTC"), "once", NOON, now) == (True, MAX_MISSED, now + MINUTE)

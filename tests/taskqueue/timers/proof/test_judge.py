"""The checker of a run of timers objects to each broken promise."""

import pytest

from tests.concurrency.evidence import Event
from tests.taskqueue.proof.judge import Written
from tests.taskqueue.timers.proof.judge import EARLY, LATE, LOST, TWICE, UNEXPECTED, examine

GOOD = [Event(1, "began", 7, 0, 5, 0.01), Event(2, "ended", 7, 0, 5)]
WROTE = [Written(0, 0, 5)]


def test_a_good_run_is_clean() -> None:
    assert examine(GOOD, WROTE, 1, 1).is_clean


@pytest.mark.parametrize(
    ("events", "written", "done", "kind"),
    [
        (GOOD, WROTE, 0, LOST),
        (GOOD, [], 1, LOST),
        ([Event(1, "began", 7, 0, 5, -0.001)], WROTE, 1, EARLY),
        ([*GOOD, Event(3, "began", 8, 0, 6, 0.1, "expired")], WROTE, 1, TWICE),
        ([*GOOD, Event(2.5, "killed", 7), Event(3, "began", 8, 0, 6, 0.1, "")], WROTE, 1, TWICE),
        (GOOD, [Written(0, 0, 6), *WROTE], 1, LATE),
        ([*GOOD, Event(3, "unexpected", 7, text="KeyError")], WROTE, 1, UNEXPECTED),
    ],
)
def test_a_broken_promise_is_found(events: list[Event], written: list[Written], done: int, kind: str) -> None:
    found = examine(events, written, 1, done)
    assert [name for name, cases in found.violations.items() if cases] == [kind]


def test_it_may_begin_again_after_a_death_or_an_outage() -> None:
    again = Event(3, "began", 8, 0, 6, 0.1, "expired")
    assert examine([*GOOD, Event(2.5, "killed", 7), again], WROTE, 1, 1).is_clean
    assert examine([*GOOD, Event(2.5, "restarted", 0), again], WROTE, 1, 1).is_clean
    assert examine([*GOOD, Event(2.5, "stopped", 7), again], WROTE, 1, 1).is_clean


def test_one_that_stood_still_may_note_late_that_it_began() -> None:
    stood_still = [Event(0.5, "stopped", 6), Event(3, "began", 6, 0, 4, 0.01)]
    again = [Event(1, "began", 7, 0, 5, 0.01, "expired"), Event(2, "ended", 7, 0, 5)]
    assert examine([*again, *stood_still], WROTE, 1, 1).is_clean

"""The judge of the locks objects to what must not be, and to nothing else."""

from tests.concurrency.evidence import Event
from tests.locks.proof.judge import (
    BESIDE,
    BUFFER,
    FENCE,
    LATE,
    LOST,
    MISSED,
    OVER,
    TWO,
    UNEXPECTED,
    Written,
    examine,
)
from tests.locks.proof.terms import CONSUMED, NOT_EMPTY, PERMITS, PRODUCED, READERS


def span(who: int, begun: float, ended: float, what: str, count: int = 1, fence: int = 1) -> list[Event]:
    text, serial = f"{what} {count}", int(begun * 1_000)
    return [Event(at, word, who, serial, fence, text=text) for at, word in ((begun, "begun"), (ended, "held"))]


def broken(*spans: list[Event], steps: tuple[Written, ...] = ()) -> set[str]:
    events = [event for events in spans for event in events]
    return {kind for kind, cases in examine(events, steps).violations.items() if cases}


def test_one_after_the_other_is_right() -> None:
    assert not broken(span(1, 1, 2, "lock-0", fence=1), span(2, 2, 3, "lock-0", fence=2))
    assert not broken(span(1, 1, 3, "lock-0"), span(2, 2, 4, "lock-1"))


def test_two_at_once_is_wrong() -> None:
    assert broken(span(1, 1, 3, "lock-0", fence=1), span(2, 2, 4, "lock-0", fence=2)) == {TWO}
    assert broken(span(1, 1, 3, "buffer", fence=1), span(2, 2, 4, "buffer", fence=2)) == {TWO}


def test_a_fence_does_not_go_back() -> None:
    assert broken(span(1, 1, 2, "lock-0", fence=2), span(2, 3, 4, "lock-0", fence=2)) == {FENCE}


def test_the_fence_of_a_writer_is_above_all_before() -> None:
    read = span(1, 1, 2, "read", fence=5)
    assert not broken(read, span(2, 3, 4, "write", fence=6), span(3, 5, 6, "read", fence=3))
    assert not broken(read, span(1, 2, 4, "write", fence=5))  # upgraded
    assert broken(read, span(2, 3, 4, "write", fence=5)) == {FENCE}
    assert broken(read, span(1, 3, 4, "write", fence=4)) == {FENCE}
    assert broken(span(2, 3, 4, "write", fence=6), span(3, 5, 6, "write", fence=5)) == {FENCE}


def test_permits_are_counted() -> None:
    full = span(1, 1, 5, "semaphore", PERMITS - 1)
    assert not broken(full, span(2, 2, 3, "semaphore", 1))
    assert broken(full, span(2, 2, 3, "semaphore", 2)) == {OVER}


def test_readers_are_beside_readers_only() -> None:
    readers = [span(who, 1, 3, "read") for who in range(max(READERS))]
    assert not broken(*readers)
    assert broken(*readers, span(9, 2, 4, "read")) == {BESIDE}
    assert broken(span(1, 1, 3, "read"), span(2, 2, 4, "write")) == {BESIDE}
    assert broken(span(1, 1, 3, "write"), span(2, 2, 4, "write")) == {BESIDE}
    assert not broken(span(1, 1, 2, "write"), span(2, 2, 4, "read"))


def test_a_write_behind_the_guard_follows_the_last_one() -> None:
    assert not broken(steps=(Written(0, 0, 5), Written(1, 0, 3), Written(0, 5, 5), Written(0, 5, 6)))
    assert broken(steps=(Written(0, 0, 5), Written(0, 0, 6))) == {LATE}
    assert broken(steps=(Written(0, 0, 5), Written(0, 5, 4))) == {LATE}


def test_each_item_of_the_buffer_is_taken_once_and_in_order() -> None:
    put = [Written(PRODUCED, number, 1) for number in (1, 2, 3, 4)]
    taken = [Written(CONSUMED, number, 1) for number in (1, 2)]
    assert not broken(steps=(put[0], taken[0], put[1], taken[1], put[2]))
    assert broken(steps=(put[0], taken[0], taken[0])) == {BUFFER}
    assert broken(steps=(put[0], put[1], taken[1])) == {BUFFER}
    assert broken(steps=tuple(put)) == {BUFFER}
    assert broken(steps=(put[0], put[0])) == {BUFFER}


def test_a_notification_wakes_somebody() -> None:
    notified = Event(1, "notified", 1, pk=7)
    assert not broken([notified, Event(5, "taken", 2, pk=7)])
    assert broken([notified, Event(5, "taken", 2, pk=8)]) == {LOST}
    assert not broken([notified, Event(5, "given_back", 2, pk=7)])


def test_who_waits_is_found_by_whoever_notifies() -> None:
    wait = Event(9.1, "late", 2, since=1, text=f"9 {NOT_EMPTY}")
    nobody = Event(5, "told", 1, since=4, text=NOT_EMPTY)
    assert broken([wait, nobody]) == {MISSED}
    assert not broken([wait, nobody._replace(fence=1)])
    assert not broken([wait, nobody._replace(text="another")])
    assert not broken([wait, nobody._replace(since=0.9)])
    assert not broken([wait, nobody._replace(at=9.05)])
    assert not broken([wait, nobody, Event(3, "stopped", 2)])
    assert broken([wait, nobody, Event(3, "stopped", 1)]) == {MISSED}
    assert not broken([wait, nobody, Event(12, "restarted", 0, since=8)])
    assert broken([wait, nobody, Event(12, "restarted", 0, since=11)]) == {MISSED}


def test_who_is_woken_stood_there_until_it_was_notified() -> None:
    woken = [Event(8, "taken", 2, pk=7), Event(9, "woken", 2, since=1, text=f"20 {NOT_EMPTY}")]
    by = [Event(6, "told", 3, fence=1, since=5, text=NOT_EMPTY), Event(6, "notified", 3, pk=7)]
    assert broken([*woken, *by, Event(4, "told", 1, since=3, text=NOT_EMPTY)]) == {MISSED}
    assert not broken([*woken, *by, Event(7, "told", 1, since=5.5, text=NOT_EMPTY)])
    assert not broken([*woken, *by, Event(4, "told", 1, since=0.5, text=NOT_EMPTY)])


def test_what_nobody_expects_is_told() -> None:
    assert broken([Event(1, "unexpected", 1, text="KeyError: 5")]) == {UNEXPECTED}

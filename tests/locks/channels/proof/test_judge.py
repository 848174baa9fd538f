"""The judge of a run of channels objects to each promise that is broken."""

import pytest

from tests.concurrency.evidence import Event
from tests.locks.channels.proof.judge import GAP, LOST, ORDER, TWICE, UNEXPECTED, UNSAID, Effect, Kept, examine

KEPT = [Kept(1, 7, 1), Kept(2, 7, 2)]
SENT = [Event(1, "published", 7, 1, 1), Event(2, "published", 7, 2, 2)]
READ = [Event(3 + n, name, 8, n, n, 0.0, "7") for name in ("a", "b") for n in (1, 2)]
HEARD = [Event(0, "listens", 9), *(Event(3 + n, "heard", 9, n, n, 0.0, "7") for n in (1, 2))]
GOOD = [*SENT, *READ, *HEARD]
DONE = [Effect(name, number) for name in ("a", "b") for number in (1, 2)]


def test_a_good_run_is_clean_also_if_messages_came_again() -> None:
    assert examine(GOOD, KEPT, DONE).is_clean
    assert examine([*GOOD, READ[0]._replace(at=9)], KEPT, DONE).is_clean


@pytest.mark.parametrize(
    ("events", "kept", "done", "kind"),
    [
        ([*GOOD, Event(9, "a", 8, 1, 2, 0.0, "7")], KEPT, DONE, ORDER),
        ([*GOOD, Event(9, "heard", 9, 2, 2, 0.0, "7")], KEPT, DONE, GAP),
        ([*SENT, *READ, HEARD[0], HEARD[2]], KEPT, DONE, GAP),
        ([one for one in GOOD if (one.what, one.pk) != ("a", 2)], KEPT, DONE, LOST),
        (GOOD, KEPT, DONE[:-1], LOST),
        (GOOD, KEPT, [*DONE, Effect("b", 2)], TWICE),
        (GOOD, KEPT, [*DONE, Effect("a", 1)], TWICE),
        ([*GOOD, Event(9, "published", 7, 3, 3)], KEPT, DONE, UNSAID),
        ([*GOOD, Event(9, "unexpected", 7, text="KeyError")], KEPT, DONE, UNEXPECTED),
    ],
)
def test_a_broken_promise_is_found(
    events: list[Event], kept: list[Kept], done: list[Effect], kind: str
) -> None:
    found = examine(events, kept, done)
    assert [name for name, cases in found.violations.items() if cases] == [kind]


def test_a_publisher_whose_messages_are_twice_there_is_found() -> None:
    kept = [*KEPT, Kept(3, 7, 2)]
    events = [*GOOD, *(Event(9, name, 8, 3, 2, 0.0, "7") for name in ("a", "b"))]
    found = examine(events, kept, [*DONE, Effect("a", 3), Effect("b", 3)])
    assert found.violations[ORDER] == ["those of 7 are not in its order, or twice"]

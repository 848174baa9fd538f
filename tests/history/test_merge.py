"""The rows for a batch of events."""

import pytest

from resourcepool.history.writer import merge_events
from resourcepool.models import Proxy
from resourcepool.signals import EventKind, RowEvent
from tests.app.models import Device

BY_THE_HOLDER = (EventKind.RELEASED, EventKind.HANDED_OVER, EventKind.FIXED, EventKind.QUARANTINED)
BY_OTHERS = (EventKind.LOST, EventKind.EXPIRED, EventKind.REVOKED)

Told = list[tuple[EventKind, int]]  # what happens to grants of one row, by fence
ACQUIRED, RELEASED = (EventKind.ACQUIRED, 1), (EventKind.RELEASED, 1)


def events(told: Told) -> list[tuple[EventKind, int, bool]]:
    """Return the events: (what, fence, whether it tells of the whole lease)."""
    merged = merge_events([RowEvent(what, Proxy, "default", 1, fence) for what, fence in told])
    return [(one.event.kind, one.event.fence, one.begun is not None) for one in merged]


@pytest.mark.parametrize("end", BY_THE_HOLDER)
def test_a_lease_that_begins_and_ends_in_it_is_one_event_of_its_end(end: EventKind) -> None:
    assert events([ACQUIRED, (end, 1)]) == [(end, 1, True)]


@pytest.mark.parametrize(
    "told",
    [
        *([ACQUIRED, (end, 1)] for end in BY_OTHERS),  # asked for by whoever tells how long that was held
        [ACQUIRED],
        [RELEASED],
        [ACQUIRED, (EventKind.LEAKED, 1), RELEASED],
    ],
)
def test_other_events_are_kept_in_their_order(told: Told) -> None:
    assert events(told) == [(what, fence, False) for what, fence in told]


def test_a_lease_in_the_middle_is_merged_at_its_end() -> None:
    told = [RELEASED, (EventKind.ACQUIRED, 3), (EventKind.ACQUIRED, 5), (EventKind.RELEASED, 5)]
    assert events([*told, (EventKind.LOST, 3)]) == [
        (EventKind.RELEASED, 1, False),
        (EventKind.ACQUIRED, 3, False),
        (EventKind.RELEASED, 5, True),
        (EventKind.LOST, 3, False),
    ]


def test_the_same_number_in_another_pool_or_of_another_row_is_another_lease() -> None:
    began = RowEvent(EventKind.ACQUIRED, Proxy, "default", 1, 7)
    for model, pk, fence in ((Device, 1, 7), (Proxy, 2, 7), (Proxy, 1, 8)):
        assert len(merge_events([began, RowEvent(EventKind.RELEASED, model, "default", pk, fence)])) == 2

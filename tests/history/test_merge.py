"""The rows for a batch of events."""

from collections.abc import Sequence

import pytest

from resourcepool.history.writer import merge_events
from resourcepool.models import Proxy
from resourcepool.signals import EventKind, RowEvent
from tests.app.models import Device

BY_THE_HOLDER = (EventKind.RELEASED, EventKind.HANDED_OVER, EventKind.FIXED, EventKind.QUARANTINED)
BY_OTHERS = (EventKind.LOST, EventKind.EXPIRED, EventKind.REVOKED)


def row_events(*told: tuple[EventKind, int]) -> list[RowEvent]:
    """Return what is told of grants of one row: (what, fence)."""
    return [RowEvent(what, Proxy, "default", 1, fence) for what, fence in told]


def events(told: Sequence[RowEvent]) -> list[tuple[EventKind, int, bool]]:
    """Return the events: (what, fence, whether it tells of the whole lease)."""
    return [(one.event.kind, one.event.fence, one.begun is not None) for one in merge_events(told)]


@pytest.mark.parametrize("end", BY_THE_HOLDER)
def test_a_lease_that_begins_and_ends_in_it_is_one_event_of_its_end(end: EventKind) -> None:
    assert events(row_events((EventKind.ACQUIRED, 1), (end, 1))) == [(end, 1, True)]


@pytest.mark.parametrize("end", BY_OTHERS)
def test_a_lease_that_its_holder_did_not_end_keeps_the_event_of_its_beginning(end: EventKind) -> None:
    """It is asked for by whoever tells how long that was held, or that somebody else has the row since."""
    assert events(row_events((EventKind.ACQUIRED, 1), (end, 1))) == [
        (EventKind.ACQUIRED, 1, False),
        (end, 1, False),
    ]


def test_a_lease_that_goes_on_is_announced() -> None:
    assert events(row_events((EventKind.ACQUIRED, 1))) == [(EventKind.ACQUIRED, 1, False)]


def test_the_end_of_a_lease_that_was_announced_before_is_told() -> None:
    assert events(row_events((EventKind.RELEASED, 1))) == [(EventKind.RELEASED, 1, False)]


def test_what_happens_during_a_lease_comes_after_its_beginning() -> None:
    told = row_events((EventKind.ACQUIRED, 1), (EventKind.LEAKED, 1), (EventKind.RELEASED, 1))
    assert events(told) == [
        (EventKind.ACQUIRED, 1, False),
        (EventKind.LEAKED, 1, False),
        (EventKind.RELEASED, 1, False),
    ]


def test_the_order_is_kept() -> None:
    told = row_events(
        (EventKind.RELEASED, 1),
        (EventKind.ACQUIRED, 3),
        (EventKind.ACQUIRED, 5),
        (EventKind.RELEASED, 5),
        (EventKind.LOST, 3),
    )
    assert events(told) == [
        (EventKind.RELEASED, 1, False),
        (EventKind.ACQUIRED, 3, False),
        (EventKind.RELEASED, 5, True),
        (EventKind.LOST, 3, False),
    ]


def test_the_same_number_in_another_pool_or_of_another_row_is_another_lease() -> None:
    began = RowEvent(EventKind.ACQUIRED, Proxy, "default", 1, 7)
    for model, pk, fence in ((Device, 1, 7), (Proxy, 2, 7), (Proxy, 1, 8)):
        assert len(merge_events([began, RowEvent(EventKind.RELEASED, model, "default", pk, fence)])) == 2

"""Which events a batch of facts becomes."""

from collections.abc import Sequence

import pytest

from resourcepool.history.merging import merged, taken_apart
from resourcepool.models import Proxy
from resourcepool.signals import Fact, What
from tests.app.models import Device

BY_THE_HOLDER = (What.RELEASED, What.HANDED_OVER, What.FIXED, What.QUARANTINED)
BY_OTHERS = (What.LOST, What.EXPIRED, What.FREED)


def facts(*told: tuple[What, int]) -> list[Fact]:
    """Return what is told of grants of one row: (what, fence)."""
    return [Fact(what, Proxy, "default", 1, fence) for what, fence in told]


def events(told: Sequence[Fact]) -> list[tuple[What, int, bool]]:
    """Return the events: (what, fence, whether it tells of the whole lease)."""
    return [(one.fact.what, one.fact.fence, one.begun is not None) for one in merged(told)]


@pytest.mark.parametrize("end", BY_THE_HOLDER)
def test_a_lease_that_begins_and_ends_in_it_is_one_event_of_its_end(end: What) -> None:
    assert events(facts((What.ACQUIRED, 1), (end, 1))) == [(end, 1, True)]


@pytest.mark.parametrize("end", BY_OTHERS)
def test_a_lease_that_its_holder_did_not_end_keeps_the_event_of_its_beginning(end: What) -> None:
    """It is asked for by whoever tells how long that was held, or that somebody else has the row since."""
    assert events(facts((What.ACQUIRED, 1), (end, 1))) == [(What.ACQUIRED, 1, False), (end, 1, False)]


def test_a_lease_that_goes_on_is_announced() -> None:
    assert events(facts((What.ACQUIRED, 1))) == [(What.ACQUIRED, 1, False)]


def test_the_end_of_a_lease_that_was_announced_before_is_told() -> None:
    assert events(facts((What.RELEASED, 1))) == [(What.RELEASED, 1, False)]


def test_what_happens_during_a_lease_comes_after_its_beginning() -> None:
    told = facts((What.ACQUIRED, 1), (What.LEAKED, 1), (What.RELEASED, 1))
    assert events(told) == [(What.ACQUIRED, 1, False), (What.LEAKED, 1, False), (What.RELEASED, 1, False)]


def test_the_order_is_kept() -> None:
    told = facts((What.RELEASED, 1), (What.ACQUIRED, 3), (What.ACQUIRED, 5), (What.RELEASED, 5), (What.LOST, 3))
    assert events(told) == [
        (What.RELEASED, 1, False),
        (What.ACQUIRED, 3, False),
        (What.RELEASED, 5, True),
        (What.LOST, 3, False),
    ]


def test_the_same_number_in_another_pool_or_of_another_row_is_another_lease() -> None:
    began = Fact(What.ACQUIRED, Proxy, "default", 1, 7)
    for model, pk, fence in ((Device, 1, 7), (Proxy, 2, 7), (Proxy, 1, 8)):
        assert len(merged([began, Fact(What.RELEASED, model, "default", pk, fence)])) == 2


def test_what_could_not_be_written_is_the_same_facts_again() -> None:
    told = facts((What.FREED, 0), (What.ACQUIRED, 1), (What.RELEASED, 1), (What.ACQUIRED, 3))
    assert taken_apart(merged(told)) == told

"""The assignment of free rows to tickets: a pure function."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, strategies as st

from resourcepool.waiting.assignment import WaitingTicket, allot

US, DE, ANY = "us", "de", "any"


def waiting_ticket(pk: int, selector: str, count: int) -> WaitingTicket:
    return WaitingTicket(pk, selector=selector, count=count)


TABLE = {
    "no waiters": ([], {ANY: [1]}, {}),
    "nothing is free": ([(7, ANY, 1)], {ANY: []}, {}),
    "one waits for one": ([(7, ANY, 1)], {ANY: [1, 2]}, {7: [1]}),
    "the first come is served first": ([(7, ANY, 1), (8, ANY, 1)], {ANY: [1]}, {7: [1]}),
    "two for two": ([(7, ANY, 1), (8, ANY, 1)], {ANY: [2, 1]}, {7: [2], 8: [1]}),
    "the order of the line counts, not their numbers": ([(9, ANY, 1), (8, ANY, 1)], {ANY: [1]}, {9: [1]}),
    "waiters for other rows are not blocked": ([(7, US, 1), (8, DE, 1)], {US: [], DE: [1]}, {8: [1]}),
    "a row that two selectors match goes to who came first": (
        [(7, US, 1), (8, ANY, 1)],
        {US: [1], ANY: [1]},
        {7: [1]},
    ),
    "and the other takes the next": ([(7, US, 1), (8, ANY, 1)], {US: [1], ANY: [1, 2]}, {7: [1], 8: [2]}),
    "many at once": ([(7, ANY, 3)], {ANY: [1, 2, 3, 4]}, {7: [1, 2, 3]}),
    "not all of many: what there is": ([(7, ANY, 3)], {ANY: [1, 2]}, {7: [1, 2]}),
    "what a ticket for many needs is its own, though it is not enough": (
        [(7, ANY, 3), (8, ANY, 1)],
        {ANY: [1, 2]},
        {7: [1, 2]},
    ),
    "what it does not need is not": ([(7, ANY, 2), (8, ANY, 1)], {ANY: [1, 2, 3]}, {7: [1, 2], 8: [3]}),
    "nor what it cannot use": ([(7, US, 2), (8, DE, 1)], {US: [1], DE: [1, 2]}, {7: [1], 8: [2]}),
    "an unknown selector matches nothing": ([(7, "?", 1), (8, ANY, 1)], {ANY: [1]}, {8: [1]}),
}


@pytest.mark.parametrize("case", TABLE)
def test_allot(case: str) -> None:
    line, free, served = TABLE[case]
    assert allot([waiting_ticket(*ticket) for ticket in line], free) == served


ONE_EACH = [waiting_ticket(number, ANY, 1) for number in (7, 8, 9)]
IN_VAIN = {
    "who does not get a row takes the next one": (ONE_EACH[:2], [1, 2], {(7, 1)}, {7: [2], 8: [1]}),
    "a row without a taker": (ONE_EACH[:2], [1, 2, 3], {(7, 1), (8, 1)}, {7: [2], 8: [3]}),
    "and nothing else is there for the second": (ONE_EACH[:2], [1, 2], {(7, 1), (8, 1)}, {7: [2]}),
    "the first is there no more": (ONE_EACH, [1, 2], {(7, 1), (7, 2)}, {8: [1], 9: [2]}),
    "and only one is free": (ONE_EACH, [1], {(7, 1)}, {8: [1]}),
    "who wants many goes on": (
        [waiting_ticket(7, ANY, 2), waiting_ticket(8, ANY, 1)],
        [1, 2, 3],
        {(7, 1)},
        {7: [2, 3], 8: [1]},
    ),
}


@pytest.mark.parametrize("case", IN_VAIN)
def test_no_waiter_is_skipped_because_a_row_was_taken(case: str) -> None:
    line, free, fails, served = IN_VAIN[case]
    assert allot(line, {ANY: free}, lambda ticket, pk: (ticket.pk, pk) not in fails) == served


def test_a_row_and_a_ticket_are_tried_at_most_twice() -> None:
    tried: list[tuple[int, int]] = []

    def take(ticket: WaitingTicket, pk: int) -> bool:
        tried.append((ticket.pk, pk))
        return False

    assert allot([waiting_ticket(number, ANY, 1) for number in range(9)], {ANY: list(range(9))}, take) == {}
    assert max(Counter(ticket for ticket, _ in tried).values()) == 2
    assert max(Counter(pk for _, pk in tried).values()) == 2


def test_a_ticket_for_several_gets_only_the_rows_it_still_needs() -> None:
    collects = WaitingTicket(7, selector=ANY, count=3, holds=((1, 5), (2, 5)))
    assert collects.lacks == 1
    assert allot([collects, waiting_ticket(8, ANY, 1)], {ANY: [3, 4]}) == {7: [3], 8: [4]}


def test_rows_of_a_ticket_accumulate() -> None:
    before = WaitingTicket(7, fence=3, count=2, holds=((1, 5),))
    assert before.given(2, 9) == WaitingTicket(7, fence=4, count=2, holds=((1, 5), (2, 9)))


selectors = st.sampled_from([US, DE, ANY, "nothing"])
frees = st.fixed_dictionaries(
    {name: st.lists(st.integers(1, 8), unique=True, max_size=8) for name in (US, DE, ANY)}
)
lines = st.lists(st.tuples(selectors, st.integers(1, 3)), max_size=10).map(
    lambda wishes: [waiting_ticket(number, *wish) for number, wish in enumerate(wishes, start=100)]
)


@given(lines, frees)
def test_no_row_is_given_twice_or_to_a_ticket_that_does_not_match(
    line: Sequence[WaitingTicket], free: Mapping[str, list[int]]
) -> None:
    served = allot(line, free)
    rows = list(itertools.chain.from_iterable(served.values()))
    assert len(rows) == len(set(rows))
    by_ticket = {ticket.pk: ticket for ticket in line}
    for ticket, pks in served.items():
        assert 0 < len(pks) <= by_ticket[ticket].count
        assert set(pks) <= set(free.get(by_ticket[ticket].selector, ()))


@given(lines, frees)
def test_no_ticket_is_served_before_an_earlier_one_with_the_same_selector(
    line: Sequence[WaitingTicket], free: Mapping[str, list[int]]
) -> None:
    served = allot(line, free)
    for earlier, later in itertools.combinations(line, 2):
        if earlier.selector == later.selector:
            assert len(served.get(earlier.pk, ())) == earlier.count or later.pk not in served


@given(lines, frees)
def test_no_free_row_stays_while_a_matching_waiter_needs_one(
    line: Sequence[WaitingTicket], free: Mapping[str, list[int]]
) -> None:
    served = allot(line, free)
    taken = set(itertools.chain.from_iterable(served.values()))
    for ticket in line:
        has_all = len(served.get(ticket.pk, ())) == ticket.count
        assert has_all or set(free.get(ticket.selector, ())) <= taken


@given(lines, frees)
def test_a_new_waiter_changes_nothing_for_earlier_ones(
    line: Sequence[WaitingTicket], free: Mapping[str, list[int]]
) -> None:
    served = allot(line, free)
    for length in range(len(line)):
        shorter = allot(line[:length], free)
        assert shorter == {ticket: rows for ticket, rows in served.items() if ticket in shorter}


@given(lines, frees)
def test_waiters_for_other_rows_have_no_effect(
    line: Sequence[WaitingTicket], free: Mapping[str, list[int]]
) -> None:
    """If selectors have no row in common, each line is served independently."""
    apart = {name: [(name, pk) for pk in pks] for name, pks in free.items()}
    served = allot(line, apart)
    for name in apart:
        alone = allot([ticket for ticket in line if ticket.selector == name], apart)
        assert alone == {p.pk: served[p.pk] for p in line if p.selector == name and p.pk in served}

"""Who gets which free row: a pure decision that every waiting process makes alike."""

import itertools
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from resourcepool.leases.waiting import Place, allot, left_over

US, DE, ANY = "us", "de", "any"

TABLE = {
    "nobody waits": ([], {ANY: [1]}, {}),
    "nothing is free": ([(7, ANY, 1)], {ANY: []}, {}),
    "one waits for one": ([(7, ANY, 1)], {ANY: [1, 2]}, {7: [1]}),
    "the first come is served first": ([(7, ANY, 1), (8, ANY, 1)], {ANY: [1]}, {7: [1]}),
    "two for two": ([(7, ANY, 1), (8, ANY, 1)], {ANY: [2, 1]}, {7: [2], 8: [1]}),
    "the order of places counts, not their numbers": ([(9, ANY, 1), (8, ANY, 1)], {ANY: [1]}, {9: [1]}),
    "whoever wants something else is not held up": ([(7, US, 1), (8, DE, 1)], {US: [], DE: [1]}, {8: [1]}),
    "a row that two selectors match goes to who came first": (
        [(7, US, 1), (8, ANY, 1)],
        {US: [1], ANY: [1]},
        {7: [1]},
    ),
    "and the other takes the next": ([(7, US, 1), (8, ANY, 1)], {US: [1], ANY: [1, 2]}, {7: [1], 8: [2]}),
    "many at once": ([(7, ANY, 3)], {ANY: [1, 2, 3, 4]}, {7: [1, 2, 3]}),
    "not all of many: none": ([(7, ANY, 3)], {ANY: [1, 2]}, {}),
    "what a ticket for many has found is kept for it": ([(7, ANY, 3), (8, ANY, 1)], {ANY: [1, 2]}, {}),
    "what it does not need is not": ([(7, ANY, 2), (8, ANY, 1)], {ANY: [1, 2, 3]}, {7: [1, 2], 8: [3]}),
    "nor what it cannot use": ([(7, US, 2), (8, DE, 1)], {US: [1], DE: [1, 2]}, {8: [2]}),
    "a selector nobody looked up matches nothing": ([(7, "?", 1), (8, ANY, 1)], {ANY: [1]}, {8: [1]}),
}


@pytest.mark.parametrize("case", TABLE)
def test_allot(case: str) -> None:
    places, free, served = TABLE[case]
    assert allot([Place(*place) for place in places], free) == served


selectors = st.sampled_from([US, DE, ANY, "nothing"])
frees = st.fixed_dictionaries(
    {name: st.lists(st.integers(1, 8), unique=True, max_size=8) for name in (US, DE, ANY)}
)
lines = st.lists(st.tuples(selectors, st.integers(1, 3)), max_size=10).map(
    lambda wishes: [Place(number, *wish) for number, wish in enumerate(wishes, start=100)]
)


@given(lines, frees)
def test_nobody_gets_a_row_twice_or_one_it_did_not_ask_for(
    places: Sequence[Place], free: Mapping[str, list[int]]
) -> None:
    served = allot(places, free)
    rows = list(itertools.chain.from_iterable(served.values()))
    assert len(rows) == len(set(rows))
    by_ticket = {place.ticket: place for place in places}
    for ticket, pks in served.items():
        assert len(pks) == by_ticket[ticket].count
        assert set(pks) <= set(free.get(by_ticket[ticket].selector, ()))


@given(lines, frees)
def test_nobody_is_served_before_an_earlier_one_who_wants_the_same(
    places: Sequence[Place], free: Mapping[str, list[int]]
) -> None:
    served = allot(places, free)
    for earlier, later in itertools.combinations(places, 2):
        if (earlier.selector, earlier.count) == (later.selector, later.count):
            assert earlier.ticket in served or later.ticket not in served


@given(lines, frees)
def test_no_free_row_stays_while_somebody_in_line_for_one_matches_it(
    places: Sequence[Place], free: Mapping[str, list[int]]
) -> None:
    ones = [Place(place.ticket, place.selector, 1) for place in places]
    served = allot(ones, free)
    taken = set(itertools.chain.from_iterable(served.values()))
    for place in ones:
        assert place.ticket in served or set(free.get(place.selector, ())) <= taken


@given(lines, frees)
def test_who_joins_at_the_end_changes_nothing_for_those_in_front(
    places: Sequence[Place], free: Mapping[str, list[int]]
) -> None:
    served = allot(places, free)
    for length in range(len(places)):
        shorter = allot(places[:length], free)
        assert shorter == {ticket: rows for ticket, rows in served.items() if ticket in shorter}


@given(lines, frees)
def test_waiters_for_other_rows_neither_hold_up_nor_help(
    places: Sequence[Place], free: Mapping[str, list[int]]
) -> None:
    """With selectors that have no row in common, each line is served as if it were alone."""
    apart = {name: [(name, pk) for pk in pks] for name, pks in free.items()}
    served = allot(places, apart)
    for name in apart:
        alone = allot([place for place in places if place.selector == name], apart)
        assert alone == {
            p.ticket: served[p.ticket] for p in places if p.selector == name and p.ticket in served
        }


def test_what_sleepers_leave_goes_to_the_next_and_not_what_is_anothers() -> None:
    asleep, awake, behind = Place(1, "any", 1), Place(2, "any", 1), Place(3, "any", 1)
    places, free = [asleep, awake, behind], {"any": ["old", "fresh"]}
    served = allot(places, free)
    assert left_over(places, free, served, {1}) == {3: ["old"]}


def test_who_wants_several_gets_what_sleepers_leave_together_with_what_it_has_collected() -> None:
    places, free = [Place(1, "any", 1), Place(2, "any", 2)], {"any": ["a", "b"]}
    assert allot(places, free) == {1: ["a"]}
    assert left_over(places, free, allot(places, free), {1}) == {2: ["a", "b"]}


def test_what_sleepers_leave_is_first_kept_for_who_collects_several_in_front() -> None:
    places, free = [Place(1, "any", 1), Place(2, "any", 3), Place(3, "any", 1)], {"any": ["a", "b"]}
    assert left_over(places, free, allot(places, free), {1}) == {}

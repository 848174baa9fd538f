"""Circles of waiters, against every subset of them."""

from collections import Counter
from itertools import combinations

from hypothesis import example, given, strategies as st

from resourcepool.status.locks.cycles import Claim, Name, Owner, deadlocked, wait_cycles

A, B, C, D = (("host", number) for number in "1234")
X, Y, Z = (("lock", name) for name in "xyz")
NONE = {X: 0, Y: 0, Z: 0}

Claims = list[Claim]


def is_stuck(some: tuple[Owner, ...], wants: Claims, held: Claims, free: dict[Name, int]) -> bool:
    """Whether none of these could go on if all others gave back what they hold."""
    most = Counter(free)
    for claim in held:
        if claim.owner not in some:
            most[claim.name] += claim.permits
    return all(
        (mine := [claim for claim in wants if claim.owner == owner])
        and all(claim.permits > most[claim.name] for claim in mine)
        for owner in some
    )


def naively(wants: Claims, held: Claims, free: dict[Name, int]) -> set[Owner]:
    """Return all who are in a set of owners of which nobody can go on."""
    owners = sorted({claim.owner for claim in wants})
    sets = (some for count in range(1, len(owners) + 1) for some in combinations(owners, count))
    return {owner for some in sets if is_stuck(some, wants, held, free) for owner in some}


def blocks(one: Owner, other: Owner, wants: Claims, held: Claims, free: dict[Name, int]) -> bool:
    """Whether ``one`` waits for something that ``other`` holds."""
    wanted = {claim.name for claim in wants if claim.owner == one and claim.permits > free[claim.name]}
    return any(claim.name in wanted for claim in held if claim.owner == other)


owners, names = st.sampled_from([A, B, C, D]), st.sampled_from([X, Y, Z])
claims = st.lists(st.builds(Claim, owners, names, st.integers(1, 3)), max_size=7)


@given(claims, claims, st.fixed_dictionaries({name: st.integers(0, 2) for name in (X, Y, Z)}))
@example([Claim(A, Y), Claim(B, X)], [Claim(A, X), Claim(B, Y)], NONE)
def test_it_finds_what_trying_every_set_of_owners_finds(
    wants: Claims, held: Claims, free: dict[Name, int]
) -> None:
    lasting = deadlocked(wants, held, free)
    assert lasting == naively(wants, held, free)
    found = list(wait_cycles(wants, held, free))
    for cycle in found:
        following = [*list(cycle)[1:], *list(cycle)[:1]]
        assert all(blocks(*pair, wants, held, free) for pair in zip(cycle, following, strict=True))
        assert lasting >= set(cycle)
    named = [owner for cycle in found for owner in cycle]
    assert len(named) == len(set(named))
    everything = Counter(free)
    for claim in held:
        everything[claim.name] += claim.permits
    if all(claim.permits <= everything[claim.name] for claim in wants):
        assert bool(lasting) == bool(found)


@given(claims, claims, st.fixed_dictionaries({name: st.integers(0, 2) for name in (X, Y, Z)}))
def test_no_circle_is_left_among_those_who_are_not_named(
    wants: Claims, held: Claims, free: dict[Name, int]
) -> None:
    found = list(wait_cycles(wants, held, free))
    others = deadlocked(wants, held, free) - {owner for cycle in found for owner in cycle}
    reach = {one: {two for two in others if blocks(one, two, wants, held, free)} for one in others}
    for _ in others:
        reach = {one: some.union(*(reach[two] for two in some)) for one, some in reach.items()}
    assert not any(one in some for one, some in reach.items())


def test_two_who_wait_for_each_others_lock_are_named() -> None:
    found = wait_cycles([Claim(A, Y), Claim(B, X)], [Claim(A, X), Claim(B, Y)], NONE)
    assert list(found) == [{A: Y, B: X}]


def test_whoever_waits_for_one_in_a_circle_is_not_named_with_it() -> None:
    wants = [Claim(A, Y), Claim(B, X), Claim(C, X)]
    held = [Claim(A, X), Claim(B, Y), Claim(C, Z)]
    assert deadlocked(wants, held, NONE) == {A, B, C}
    assert list(wait_cycles(wants, held, NONE)) == [{A: Y, B: X}]


def test_a_circle_is_no_proof_where_somebody_outside_holds_a_permit_too() -> None:
    wants, held = [Claim(A, Y), Claim(B, X)], [Claim(A, X), Claim(B, Y), Claim(C, Y)]
    assert deadlocked(wants, held, NONE) == set()
    assert list(wait_cycles(wants, held, NONE)) == []


def test_it_is_one_where_all_permits_of_the_others_are_not_enough() -> None:
    wants, held = [Claim(A, Y, 2), Claim(B, X)], [Claim(A, X), Claim(B, Y), Claim(C, Y)]
    assert list(wait_cycles(wants, held, NONE)) == [{A: Y, B: X}]


def test_one_can_wait_for_what_it_holds_itself() -> None:
    found = wait_cycles([Claim(A, X, 2)], [Claim(A, X, 2)], {X: 1})
    assert list(found) == [{A: X}]


def test_what_comes_free_in_a_moment_is_no_circle() -> None:
    assert list(wait_cycles([Claim(A, Y), Claim(B, X)], [Claim(A, X), Claim(B, Y)], {X: 0, Y: 1})) == []


def test_a_name_that_was_not_read_proves_nothing() -> None:
    assert list(wait_cycles([Claim(A, Y), Claim(B, X)], [Claim(A, X), Claim(B, Y)], {X: 0})) == []


def test_a_thousand_in_one_circle_are_no_matter_of_recursion() -> None:
    everybody = [("host", f"{number:04}") for number in range(1_000)]
    held = [Claim(owner, ("lock", owner[1])) for owner in everybody]
    wants = [Claim(owner, ("lock", f"{(number + 1) % 1_000:04}")) for number, owner in enumerate(everybody)]
    (cycle,) = wait_cycles(wants, held, {claim.name: 0 for claim in held})
    assert list(cycle) == everybody

"""Worlds to plan for, and what a plan changes in them."""

from collections.abc import Sequence

from hypothesis import strategies as st

from resourcepool.queues.assignment import Member, Place, Targets

few_labels = st.dictionaries(st.sampled_from(["zone", "disk"]), st.sampled_from(["a", "b"]), max_size=2)


def servers(count: int) -> list[Member]:
    """Return equal members: 1 to count."""
    return [Member(pk, f"server-{pk}") for pk in range(1, count + 1)]


def nowhere(count: int) -> list[Place]:
    """Return queues that nobody has: 1 to count."""
    return [Place(pk) for pk in range(1, count + 1)]


def after(places: Sequence[Place], targets: Targets) -> list[Place]:
    """Return the places once everything has been handed over."""
    return [Place(place.pk, targets[place.pk], targets[place.pk], place.labels, place.pin) for place in places]


def moves(places: Sequence[Place], targets: Targets, members: Sequence[Member]) -> int:
    """Return how many queues leave a server that is still there."""
    live = {member.pk for member in members}
    return sum(place.server in live and targets[place.pk] != place.server for place in places)


def counts(targets: Targets, members: Sequence[Member]) -> list[int]:
    """Return how many queues each member gets."""
    chosen = list(targets.values())
    return [chosen.count(member.pk) for member in members]


@st.composite
def plain_worlds(draw: st.DrawFn, queues: int, members: int) -> tuple[list[Place], list[Member]]:
    """Queues anywhere, also with a server that is gone (9 and above), and members with weights alone."""
    weights = draw(st.lists(st.integers(1, 4), max_size=members))
    homes = draw(st.lists(st.none() | st.integers(1, members) | st.just(9), max_size=queues))
    places = [Place(pk, home, home) for pk, home in enumerate(homes, 1)]
    return places, [Member(pk, weight=weight) for pk, weight in enumerate(weights, 1)]


@st.composite
def worlds(
    draw: st.DrawFn, queues: int = 12, members: int = 5, weights: int = 4
) -> tuple[list[Place], list[Member]]:
    """The same with labels, pins, limits, and queues that are asked for."""
    group = [
        Member(
            pk,
            draw(st.sampled_from("abc")),
            draw(st.integers(1, weights)),
            draw(few_labels),
            draw(st.none() | st.integers(0, 5)),
        )
        for pk in range(1, draw(st.integers(0, members)) + 1)
    ]
    server = st.none() | st.integers(1, 6)
    places = [
        Place(
            pk,
            draw(server),
            draw(server),
            draw(st.just({}) | few_labels),
            draw(st.sampled_from(["", "", "a", "d"])),
        )
        for pk in range(1, draw(st.integers(0, queues)) + 1)
    ]
    return places, group

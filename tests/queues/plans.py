"""Random queues and servers to plan for, and the effects of a plan."""

from collections.abc import Mapping, Sequence
from random import Random

from hypothesis import strategies as st

from resourcepool.queues.planning.assignment import Member, QueueSnapshot, Targets

NO_LABELS: Mapping[str, str] = {}

# Filled in at random, as hypothesis itself draws mostly small worlds, in which labels rarely meet.
# Only the seed is drawn, so that a repeated example has the same world.
CHANCES = st.builds(Random, st.integers(0, 2**63))


def servers(count: int) -> list[Member]:
    """Return equal members: 1 to count."""
    return [Member(pk, f"server-{pk}") for pk in range(1, count + 1)]


def queue_at(
    pk: int,
    server: int | None = None,
    owner: int | None = None,
    labels: Mapping[str, str] = NO_LABELS,
    pin: str = "",
) -> QueueSnapshot:
    """Return a queue that ``owner`` has and ``server`` has requested, if it is another one."""
    return QueueSnapshot(pk, "", owner, None if server == owner else server, labels=labels, pin=pin)


def nowhere(count: int) -> list[QueueSnapshot]:
    """Return unowned queues: 1 to count."""
    return [queue_at(pk) for pk in range(1, count + 1)]


def after(places: Sequence[QueueSnapshot], targets: Targets) -> list[QueueSnapshot]:
    """Return the places once everything has been handed over."""
    return [
        queue_at(place.pk, targets[place.pk], targets[place.pk], place.labels, place.pin) for place in places
    ]


def moves(places: Sequence[QueueSnapshot], targets: Targets, members: Sequence[Member]) -> int:
    """Return how many queues leave a running server."""
    live = {member.pk for member in members}
    return sum(place.server in live and targets[place.pk] != place.server for place in places)


def counts(targets: Targets, members: Sequence[Member]) -> list[int]:
    """Return how many queues each member gets."""
    chosen = list(targets.values())
    return [chosen.count(member.pk) for member in members]


@st.composite
def plain_worlds(draw: st.DrawFn, queues: int, members: int) -> tuple[list[QueueSnapshot], list[Member]]:
    """Queues anywhere, also with a removed server (9 and above), and members with weights alone."""
    chance = draw(CHANCES)
    homes = chance.choice([[None, 9, *range(1, members + 1)], list(range(1, members + 1))])
    places = [
        queue_at(pk, home, home) for pk in range(chance.randint(0, queues)) for home in [chance.choice(homes)]
    ]
    return places, [Member(pk, weight=chance.randint(1, 4)) for pk in range(1, chance.randint(0, members) + 1)]


@st.composite
def worlds(
    draw: st.DrawFn, queues: int = 15, members: int = 6, weights: int = 4
) -> tuple[list[QueueSnapshot], list[Member]]:
    """The same with labels, pins, limits and requests."""
    chance = draw(CHANCES)
    group = [
        Member(
            pk,
            chance.choice("abc"),
            chance.randint(1, weights),
            some_labels(chance, 0.7),
            chance.choice([None, None, chance.randint(0, 5)]),
        )
        for pk in range(1, chance.randint(0, members) + 1)
    ]
    servers = [None, *range(1, members + 2)]
    pins = ["", "", "", "a", "d"]
    places = [
        queue_at(
            pk, chance.choice(servers), chance.choice(servers), some_labels(chance, 0.3), chance.choice(pins)
        )
        for pk in range(chance.randint(0, queues))
    ]
    return places, group


def some_labels(chance: Random, likely: float) -> dict[str, str]:
    """Return up to two labels."""
    return {name: chance.choice("xy") for name in ("zone", "disk") if chance.random() < likely}

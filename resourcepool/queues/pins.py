"""A pin is a wish: its server gets the queue while it has room, and any other when it is full (R1.9)."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from resourcepool.queues.assignment import Member, Place, Strategy, Targets


def pinned(
    strategy: Strategy, places: Sequence[Place], members: Sequence[Member]
) -> tuple[Targets, Collection[int]]:
    """Return where ``strategy`` wants the queues, and which of them (pk) are not where they are pinned to, for no room.

    The rest is shared anew without their pins: an overflow counts, too, where it goes.
    """
    wishes, overflow = list(places), set[int]()
    targets = strategy(wishes, members)
    while full := {place.pk for place in wishes if place.pin and targets[place.pk] is None}:
        overflow |= full
        wishes = [replace(place, pin="") if place.pk in full else place for place in wishes]
        targets = strategy(wishes, members)
    return targets, overflow

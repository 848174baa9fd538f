"""Assigns queues within the available room: pins give way, and queues that stay take up room (R1.9)."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from resourcepool.queues.planning.assignment import Member, Place, Strategy, Targets


def with_room(
    strategy: Strategy, places: Sequence[Place], members: Sequence[Member]
) -> tuple[Targets, Collection[int]]:
    """Return where ``strategy`` wants the queues, and the keys of those whose pinned server has no room.

    A queue that no server can take stays with its owner, if that may have it. The rest is planned again each time:
    without the pins of queues that overflow, and with less room where queues stay.
    """
    wishes, overflow, stays = list(places), set[int](), Targets()
    known: dict[int | None, Member] = {member.pk: member for member in members}
    room = _less_room(members, Counter(place.owner for place in places if not _may_stay(place, known)))
    while True:
        targets = strategy(wishes, room)
        left = [place for place in wishes if targets[place.pk] is None]
        if full := {place.pk for place in left if place.pin}:
            overflow |= full
            wishes = [replace(place, pin="") if place.pk in full else place for place in wishes]
        elif kept := {place.pk: place.owner for place in left if place.owner and _may_stay(place, known)}:
            stays |= kept
            wishes = [place for place in wishes if place.pk not in kept]
            room = _less_room(room, Counter(kept.values()))
        else:
            return targets | stays, overflow


def _less_room(members: Sequence[Member], taken: Counter[int | None]) -> list[Member]:
    """Return the members with their limits lowered by the queues that stay with them."""
    return [
        member if member.limit is None else replace(member, limit=max(0, member.limit - taken[member.pk]))
        for member in members
    ]


def _may_stay(place: Place, members: Mapping[int | None, Member]) -> bool:
    owner = members.get(place.owner)
    return owner is not None and place.labels.items() <= owner.labels.items()

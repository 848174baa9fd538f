"""All locks together: how many are held, who waits longest, and which circles there are."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

from django.db import connections
from django.db.models import Count, Min
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from resourcepool.database.retry import retrying
from resourcepool.status.alarm import ABOUT_LOCKS, Alarm, Kind
from resourcepool.status.locks.cycles import KINDS, Cycle, cycles, who
from resourcepool.status.locks.kinds import LockKind, kind_and_name, using, waiting
from resourcepool.status.locks.names import HELD, LockStatus, standing_of
from resourcepool.status.reading import Since, duration, fetched

MOST_COUNTED = 10_000  # of each kind
SHOWN = 20  # names that are waited for
NAMED = 3  # holders
LASTS = 10.0  # seconds after which a circle is more than two waits that cross


@dataclass(frozen=True, slots=True)
class LocksStanding:
    """Locks, semaphores and read-write locks at this moment; times in seconds. Conditions are waited for by nature.

    Attributes:
        holders: how many requests hold something, however many permits each; of each kind up to ``MOST_COUNTED``.
        waiters: how many wait, for any name; ``longest_wait``: for how long the first of them has.
        waited: the names that are waited for, the longest wait first, up to ``SHOWN``.
        has_more: whether more names are waited for.
    """

    holders: int = 0
    waiters: int = 0
    longest_wait: float | None = None
    waited: Sequence[LockStatus] = ()
    has_more: bool = False
    cycles: Sequence[Cycle] = ()


def standing(kinds: Collection[LockKind] = KINDS) -> LocksStanding:
    """Return the state of these kinds; circles only if all kinds are asked for: sixteen statements at most.

    Raises:
        DatabaseUnavailable: they cannot be read.
    """
    tickets = waiting(kinds)
    lines = tickets.values_list("pool").annotate(waiters=Count("pk"), first=Since(Min("asked_at")))
    waits = fetched(lines.order_by("first", "pool")[: SHOWN + 1])
    has_more = len(waits) > SHOWN
    waiters = retrying(connections[using()], tickets.count) if has_more else sum(count for _, count, _ in waits)
    chosen = [kind_and_name(line) for line, _count, _first in waits[:SHOWN]]
    found = {
        (kind, name): one
        for kind in kinds
        for name, one in standing_of(kind, [name for of, name in chosen if of is kind]).items()
    }
    holders = [kind.rows().filter(HELD).order_by().values("holder").distinct() for kind in kinds]
    return LocksStanding(
        holders=sum(retrying(connections[using()], some[:MOST_COUNTED].count) for some in holders),
        waiters=waiters,
        longest_wait=waits[0][2] if waits else None,
        waited=[found[one] for one in chosen],
        has_more=has_more,
        cycles=cycles() if waits and set(kinds) >= set(KINDS) else (),
    )


def first_holders(one: LockStatus) -> str:
    """Return some of its holders, each once, for people; "": none. Not those that still wait for more permits."""
    names = list(dict.fromkeys(who(held.holder) for held in one.in_use))
    return ", ".join([*names[:NAMED], *([".."] if len(names) > NAMED else [])])


def _about(kind: LockKind, name: str) -> str:
    return ABOUT_LOCKS % f"{kind.value} {name}"


def of_locks(found: LocksStanding, oldest: float) -> Iterator[Alarm]:
    """Yield alarms; ``oldest``: for how many seconds a caller may wait."""
    deadlocks = [cycle for cycle in found.cycles if cycle.is_certain and cycle.lasts > LASTS]
    for cycle in deadlocks:
        first = cycle.links[0]
        free = f"free {quote(first.holds)} --kind {first.held_kind.value} --reason .."
        text = _(
            "each waits for the next one, and none can go on (for %(time)s): %(who)s. To end it: %(command)s"
        ) % {
            "time": duration(cycle.lasts),
            "who": cycle.said,
            "command": f"`manage.py resourcepool_locks {free}`",
        }
        yield Alarm(Kind.DEADLOCK, _about(first.kind, first.waits_for), text)
    for one in found.waited:
        is_told = any(cycle.is_about(one.kind, one.name) for cycle in deadlocks)
        if not is_told and one.longest_wait is not None and one.longest_wait > oldest:
            text = ngettext(
                "%(count)d waits, for %(wait)s; held by %(holder)s.",
                "%(count)d wait, the first for %(wait)s; held by %(holder)s.",
                one.waiters,
            ) % {
                "count": one.waiters,
                "wait": duration(one.longest_wait),
                "holder": first_holders(one) or "-",
            }
            yield Alarm(Kind.LOCK_WAIT, _about(one.kind, one.name), text)

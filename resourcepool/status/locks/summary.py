"""All locks together: how many are held, who waits longest, and which circles there are."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

from django.db import connections
from django.db.models import Count, Min
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from resourcepool.database.retry import retrying
from resourcepool.status.alarm import ABOUT_LOCKS, Alarm, AlarmKind
from resourcepool.status.locks.cycles import KINDS, Cycle, cycles, short_holder
from resourcepool.status.locks.kinds import LockKind, kind_and_name, using, waiting
from resourcepool.status.locks.lock_status import HELD, LockStatus, statuses_of
from resourcepool.status.snapshots import Since, duration, fetch_all

MAX_HOLDERS_COUNTED = 10_000  # of each kind
MAX_NAMES_SHOWN = 20  # names that are waited for
MAX_HOLDERS_SHOWN = 3  # holders
DEADLOCK_AFTER = 10.0  # seconds after which a circle is more than two waits that cross


@dataclass(frozen=True, slots=True)
class LocksSummary:
    """Locks, semaphores and read-write locks at this moment; times in seconds. Conditions are waited for by nature.

    Attributes:
        holders: how many requests hold something, however many permits each; of each kind up to ``MAX_HOLDERS_COUNTED``.
        waiters: how many wait, for any name; ``longest_wait``: for how long the first of them has.
        waited: the names that are waited for, the longest wait first, up to ``MAX_NAMES_SHOWN``.
        has_more: whether more names are waited for.
    """

    holders: int = 0
    waiters: int = 0
    longest_wait: float | None = None
    waited: Sequence[LockStatus] = ()
    has_more: bool = False
    cycles: Sequence[Cycle] = ()


def summary(kinds: Collection[LockKind] = KINDS) -> LocksSummary:
    """Return the state of these kinds; circles only if all kinds are asked for: sixteen statements at most.

    Raises:
        DatabaseUnavailable: they cannot be read.
    """
    tickets = waiting(kinds)
    lines = tickets.values_list("pool").annotate(waiters=Count("pk"), first=Since(Min("asked_at")))
    waits = fetch_all(lines.order_by("first", "pool")[: MAX_NAMES_SHOWN + 1])
    has_more = len(waits) > MAX_NAMES_SHOWN
    waiters = retrying(connections[using()], tickets.count) if has_more else sum(count for _, count, _ in waits)
    chosen = [kind_and_name(line) for line, _count, _first in waits[:MAX_NAMES_SHOWN]]
    found = {
        (kind, name): one
        for kind in kinds
        for name, one in statuses_of(kind, [name for of, name in chosen if of is kind]).items()
    }
    holders = [kind.rows().filter(HELD).order_by().values("holder").distinct() for kind in kinds]
    return LocksSummary(
        holders=sum(retrying(connections[using()], some[:MAX_HOLDERS_COUNTED].count) for some in holders),
        waiters=waiters,
        longest_wait=waits[0][2] if waits else None,
        waited=[found[one] for one in chosen],
        has_more=has_more,
        cycles=cycles() if waits and set(kinds) >= set(KINDS) else (),
    )


def first_holders(one: LockStatus) -> str:
    """Return some of its holders, each once, for people; "": none. Not those that still wait for more permits."""
    names = list(dict.fromkeys(short_holder(held.holder) for held in one.in_use))
    return ", ".join([*names[:MAX_HOLDERS_SHOWN], *([".."] if len(names) > MAX_HOLDERS_SHOWN else [])])


def _about(kind: LockKind, name: str) -> str:
    return ABOUT_LOCKS % f"{kind.value} {name}"


def lock_alarms(found: LocksSummary, oldest: float) -> Iterator[Alarm]:
    """Yield alarms; ``oldest``: for how many seconds a caller may wait."""
    deadlocks = [cycle for cycle in found.cycles if cycle.is_certain and cycle.lasts > DEADLOCK_AFTER]
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
        yield Alarm(AlarmKind.DEADLOCK, _about(first.kind, first.waits_for), text)
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
            yield Alarm(AlarmKind.LOCK_WAIT, _about(one.kind, one.name), text)

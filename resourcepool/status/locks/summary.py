"""A summary of all locks: holders, longest waits and wait cycles; and their alarms."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

from django.db import connections
from django.db.models import Count, Min

from resourcepool.db.retry import retrying
from resourcepool.status.alarm import ABOUT_LOCKS, Alarm, AlarmKind, about_row
from resourcepool.status.locks.cycles import KINDS, Cycle, cycles, short_holder
from resourcepool.status.locks.kinds import LockKind, kind_and_name, using, waiting
from resourcepool.status.locks.lock_status import HELD, LockStatus, status_of
from resourcepool.status.snapshots import Since, fetch_all
from resourcepool.status.times import duration
from resourcepool.translation import gettext as _, ngettext

MAX_HOLDERS_COUNTED = 10_000  # per kind
MAX_NAMES_SHOWN = 20
MAX_HOLDERS_SHOWN = 3
DEADLOCK_AFTER = 10.0  # seconds; shorter wait cycles raise no alarm


@dataclass(frozen=True, slots=True)
class LocksSummary:
    """The current state of locks, semaphores and read-write locks; times in seconds.

    Attributes:
        holders: number of requests that hold something; at most ``MAX_HOLDERS_COUNTED`` of each kind.
        waiters: number of waiters for any name; ``longest_wait``: of the first of them.
        waited: the names with waiters, the longest wait first, at most ``MAX_NAMES_SHOWN``.
        has_more: whether more names have waiters.
    """

    holders: int = 0
    waiters: int = 0
    longest_wait: float | None = None
    waited: Sequence[LockStatus] = ()
    has_more: bool = False
    cycles: Sequence[Cycle] = ()


def summary(kinds: Collection[LockKind] = KINDS) -> LocksSummary:
    """Return the summary of these kinds; with wait cycles only for all kinds. At most sixteen queries.

    Raises:
        DatabaseUnavailable: they cannot be read.
    """
    tickets = waiting(kinds)
    names = tickets.values_list("pool").annotate(waiters=Count("pk"), first=Since(Min("asked_at")))
    waits = fetch_all(names.order_by("first", "pool")[: MAX_NAMES_SHOWN + 1])
    has_more = len(waits) > MAX_NAMES_SHOWN
    waiters = retrying(connections[using()], tickets.count) if has_more else sum(count for _, count, _ in waits)
    shown = [kind_and_name(pool) for pool, _count, _first in waits[:MAX_NAMES_SHOWN]]
    statuses = {
        (kind, name): status
        for kind in kinds
        for name, status in status_of(kind, [name for of, name in shown if of is kind]).items()
    }
    holders = [kind.rows().filter(HELD).order_by().values("holder").distinct() for kind in kinds]
    return LocksSummary(
        holders=sum(retrying(connections[using()], rows[:MAX_HOLDERS_COUNTED].count) for rows in holders),
        waiters=waiters,
        longest_wait=waits[0][2] if waits else None,
        waited=[statuses[key] for key in shown],
        has_more=has_more,
        cycles=cycles() if waits and set(kinds) >= set(KINDS) else (),
    )


def first_holders(one: LockStatus) -> str:
    """Return some distinct holders, for people; "" if none. Without requests that still wait for more permits."""
    names = list(dict.fromkeys(short_holder(held.holder) for held in one.in_use))
    return ", ".join([*names[:MAX_HOLDERS_SHOWN], *([".."] if len(names) > MAX_HOLDERS_SHOWN else [])])


def _about(kind: LockKind, name: str) -> str:
    return ABOUT_LOCKS % f"{kind.value} {name}"


def lock_alarms(locks: LocksSummary, oldest: float) -> Iterator[Alarm]:
    """Yield alarms; ``oldest``: seconds that a caller may wait.

    A name in a deadlock gets no second alarm for its long wait.
    """
    deadlocks = [cycle for cycle in locks.cycles if cycle.is_certain and cycle.lasts > DEADLOCK_AFTER]
    for cycle in deadlocks:
        first = cycle.links[0]
        revoke = f"revoke {quote(first.holds)} --kind {first.held_kind.value} --reason .."
        text = _("wait cycle for %(time)s: %(who)s. To resolve it: %(command)s") % {
            "time": duration(cycle.lasts),
            "who": cycle.said,
            "command": f"`manage.py resourcepool_locks {revoke}`",
        }
        row = about_row(first.held_kind.model, first.held_kind.page_key(first.holds))
        yield Alarm(AlarmKind.DEADLOCK, _about(first.kind, first.waits_for), text, **row)
    for one in locks.waited:
        is_deadlocked = any(cycle.is_about(one.kind, one.name) for cycle in deadlocks)
        if not is_deadlocked and one.longest_wait is not None and one.longest_wait > oldest:
            text = ngettext(
                "%(count)d waiter, for %(wait)s; held by %(holder)s.",
                "%(count)d waiters, the first for %(wait)s; held by %(holder)s.",
                one.waiters,
            ) % {
                "count": one.waiters,
                "wait": duration(one.longest_wait),
                "holder": first_holders(one) or "-",
            }
            row = about_row(one.kind.model, one.kind.page_key(one.name))
            yield Alarm(AlarmKind.LOCK_WAIT, _about(one.kind, one.name), text, **row)

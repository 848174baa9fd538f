"""A summary of all locks (holders, longest waits, wait cycles) and their alarms; the locks that a process holds."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from shlex import quote
from typing import Any

from django.db import connections
from django.db.models import Count, Min, Q

from resourcepool.db.retry import retrying
from resourcepool.locks.bulk_release import INCARNATION
from resourcepool.locks.models import Barrier, ConditionWaiter, Lock, RWLockPermit, SemaphorePermit
from resourcepool.locks.registry import parse_holder
from resourcepool.status.alarm import ABOUT_LOCKS, Alarm, AlarmKind, about_row
from resourcepool.status.locks.cycles import KINDS, Cycle, cycles, short_holder
from resourcepool.status.locks.kinds import LockKind, kind_and_name, using, waiting
from resourcepool.status.locks.lock_status import HELD, LockHolder, LockStatus, statuses_of
from resourcepool.status.snapshots import Since, fetch_all
from resourcepool.status.system import LOCKS, System, gauge
from resourcepool.status.times import ago, duration
from resourcepool.translation import gettext as _, ngettext

MAX_NAMES_PER_KIND = 1_000
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
    """Return the summary of these kinds; with wait cycles only for all kinds. At most 23 queries.

    Raises:
        DatabaseUnavailable: they cannot be read.
    """
    tickets = waiting(kinds)
    names = tickets.values_list("pool").annotate(waiters=Count("pk"), first=Since(Min("asked_at")))
    waits = fetch_all(names.order_by("first", "pool")[: MAX_NAMES_SHOWN + 1])
    has_more = len(waits) > MAX_NAMES_SHOWN
    waiters = retrying(connections[using()], tickets.count) if has_more else sum(count for _, count, _ in waits)
    shown = [kind_and_name(pool) for pool, _count, _first in waits[:MAX_NAMES_SHOWN]]
    holders = [kind.rows().filter(HELD).order_by().values("holder").distinct() for kind in kinds]
    return LocksSummary(
        holders=sum(retrying(connections[using()], rows[:MAX_HOLDERS_COUNTED].count) for rows in holders),
        waiters=waiters,
        longest_wait=waits[0][2] if waits else None,
        waited=statuses_of(shown),
        has_more=has_more,
        cycles=cycles() if waits and set(kinds) >= set(KINDS) else (),
    )


def first_holders(one: LockStatus) -> str:
    """Return some distinct holders, for people; "" if none. Without requests that still wait for more permits."""
    names = list(dict.fromkeys(short_holder(held.holder) for held in one.in_use))
    return ", ".join([*names[:MAX_HOLDERS_SHOWN], *([".."] if len(names) > MAX_HOLDERS_SHOWN else [])])


def past_text(one: LockStatus) -> str:
    """Return since when it is held and who held it before, for people; "" if neither is known."""
    times = [held.held for held in one.in_use if held.held is not None]
    since = ngettext("for %s", "the first for %s", len(one.in_use)) % duration(max(times)) if times else ""
    before = _("before: %s") % before_text(one) if one.before else ""
    return "; ".join(filter(None, (since, before)))


def before_text(one: LockStatus) -> str:
    """Return who held it before, and how that ended, for people; "" if unknown."""
    if one.before is None:
        return ""
    values = {
        "holder": short_holder(one.before.holder),
        "how": one.before.what.label,
        "ago": ago(one.before.ago),
    }
    return _("%(holder)s, %(how)s %(ago)s") % values


def state_sentence(one: LockStatus) -> str:
    """Return in a sentence its holder, or why it can or cannot be acquired."""
    if one.kind is LockKind.BARRIER:
        up = _("Barrier is up; waiters continue when it is removed.")
        return up if one.creator else _("Barrier is down; wait() returns at once.")
    if one.kind is LockKind.CONDITION:
        return _("Waiters block until notify() is called.") if one.waiters else _("No waiters.")
    if not one.permits and not one.held:
        return _("No permits: all requests wait until it is resized.")
    if one.held > one.permits:
        return _("More permits are held than exist now; the surplus is not granted again after its release.")
    if one.held == one.permits and one.in_use:
        left = duration(max(held.expires_in for held in one.in_use))
        values = {"holder": first_holders(one), "left": left}
        return _("Held by %(holder)s; expires in %(left)s unless renewed.") % values
    if one.waiters:
        return _("Permits are free: the first waiter gets them in a moment, or needs more than these.")
    return _("Free: the next request gets it.")


def lock_facts(one: LockStatus, wait_cycles: Iterable[Cycle] = ()) -> Iterator[tuple[str, str]]:
    """Yield (name, value) of what a person asks about a lock; ``wait_cycles``: about it."""
    yield _("state"), state_sentence(one)
    if one.creator:
        yield _("created by"), one.creator
    if one.kind.has_permits:
        yield _("held"), f"{one.held:,}/{one.permits:,}"
    for holder in one.holders:
        yield _("holder") if one.kind.is_held else _("notified"), _holder_text(holder)
    if one.before:
        yield _("held before by"), before_text(one)
    if one.longest_wait is not None:
        text = _("%(count)d, the first for %(wait)s")
        yield _("waiters"), text % {"count": one.waiters, "wait": duration(one.longest_wait)}
    for waiter in one.line:
        text = _("%(holder)s: %(permits)d, waiting for %(waited)s")
        yield _("waiter"), text % {**asdict(waiter), "waited": duration(waiter.waited)}
    for cycle in wait_cycles:
        yield _("deadlock"), cycle.said
    if one.kind.is_held:
        yield _("fence"), str(one.fence)


def _holder_text(one: LockHolder) -> str:
    text = _("%(holder)s: %(permits)d, fence %(fence)d, expires in %(left)s unless renewed")
    if one.is_waiting:
        text = _("%(holder)s: holds %(permits)d, waiting for more")
    shown = text % {**asdict(one), "left": duration(one.expires_in)}
    held = "" if one.held is None else _("held for %s") % duration(one.held)
    return ", ".join(filter(None, (shown, held)))


def _about(kind: LockKind, name: str) -> str:
    return ABOUT_LOCKS % f"{kind.value} {name}"


def lock_alarms(locks: LocksSummary, oldest: float) -> Iterator[Alarm]:
    """Yield alarms; ``oldest``: seconds that a caller may wait.

    A name in a deadlock gets no second alarm for its long wait.
    """
    deadlocks = [cycle for cycle in locks.cycles if cycle.lasts > DEADLOCK_AFTER]
    for cycle in deadlocks:
        first = cycle.links[0]
        revoke = f"revoke {quote(first.holds)} --kind {first.held_kind.value} --reason .."
        text = _("wait cycle for %(time)s: %(who)s. To resolve it: %(command)s") % {
            "time": duration(cycle.lasts),
            "who": cycle.said,
            "command": f"`manage.py resourcepool_locks {revoke}`",
        }
        row = about_row(first.held_kind.model, first.held_kind.page_key(first.holds))
        yield Alarm(AlarmKind.DEADLOCK, _about(first.held_kind, first.holds), text, **row)
    for one in locks.waited:
        is_deadlocked = any(cycle.is_about(one.kind, one.name) for cycle in deadlocks)
        if not is_deadlocked and one.longest_wait is not None and one.longest_wait > oldest:
            text = _("waiters: %(count)d, the first for %(wait)s; held by %(holder)s.")
            wait, holder = duration(one.longest_wait), first_holders(one) or "-"
            text %= {"count": one.waiters, "wait": wait, "holder": holder}
            row = about_row(one.kind.model, one.kind.page_key(one.name))
            yield Alarm(AlarmKind.LOCK_WAIT, _about(one.kind, one.name), text, **row)


class LocksSystem(System):
    """The locks; an alarm names the kind of its lock."""

    def list_of_alarm(self, kind: AlarmKind, name: str) -> tuple[Any, dict[str, str]]:
        lock_kind, _space, name = name.partition(" ")
        return LockKind(lock_kind).model, {"status": "waited", "q": name}


SYSTEM = LocksSystem(
    name="locks",
    word="locks",
    viewed=(Lock, SemaphorePermit, RWLockPermit),
    details=(ConditionWaiter, Barrier),
    read=summary,
    figures=(
        gauge("holders", "Requests that hold a lock, a semaphore or a read-write lock.", "holders"),
        gauge("waiters", "Waiters for one.", "waiters"),
        gauge(
            "longest_wait_seconds",
            "Time for which the first of them has waited.",
            lambda one: one.longest_wait or 0,
        ),
        gauge("deadlocks", "Wait cycles.", lambda one: len(one.cycles)),
    ),
    alarms=lambda locks, limits: lock_alarms(locks, limits.oldest_wait),
    section=LOCKS,
    subject=ABOUT_LOCKS,
    alarm_operations=dict.fromkeys((AlarmKind.DEADLOCK, AlarmKind.LOCK_WAIT), ("revoke", "revoke-holder")),
)


@dataclass(frozen=True, slots=True)
class HeldName:
    """A name that a process holds. ``process``: its unique 8 digits; ``who``: host, process and thread."""

    kind: LockKind
    name: str
    permits: int
    process: str
    who: str

    @property
    def called(self) -> str:
        """Its kind and name, for people."""
        return self.kind.called(self.name)


def processes(holder: str) -> set[str]:
    """Return the unique 8 hexadecimal digits of each process that matches ``holder`` and holds something.

    Args:
        holder: a holder as shown in lists, its 8 digits, or its first parts: ``host/pid`` or ``host``.

    Raises:
        DatabaseUnavailable: they cannot be read.
    """
    holder = holder.strip().rstrip("/")
    digits = parse_holder(holder)[0] if "/" in holder else holder
    if INCARNATION.fullmatch(digits):
        return {held.process for held in held_by([digits])}
    matching = {held.process for held in _held_names(Q(holder__startswith=f"{holder}/"))} if holder else set()
    return {process for process in matching if INCARNATION.fullmatch(process)}


def held_by(processes: Iterable[str]) -> list[HeldName]:
    """Return the names that these processes hold; three queries. Raises DatabaseUnavailable."""
    wanted, matches = set(processes), Q(pk__in=[])
    for process in wanted:
        matches |= Q(holder__contains=f"/{process}.")
    return [held for held in _held_names(matches) if held.process in wanted] if wanted else []


def _held_names(which: Q) -> list[HeldName]:
    counts = Counter[tuple[str, LockKind, str, str]]()
    for kind in KINDS:
        rows = kind.rows().filter(HELD).filter(which).values_list("name", "holder").order_by("name", "holder")
        for name, holder, count in fetch_all(rows.annotate(count=Count("pk"))[:MAX_NAMES_PER_KIND]):
            counts[parse_holder(holder)[0], kind, name, short_holder(holder)] += count
    return [HeldName(kind, name, count, process, by) for (process, kind, name, by), count in counts.items()]

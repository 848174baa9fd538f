"""The locks, semaphores and read-write locks that a process holds."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, Q

from resourcepool.locks.bulk_release import INCARNATION
from resourcepool.locks.registry import parse_holder
from resourcepool.status.locks.cycles import KINDS, short_holder
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.lock_status import HELD
from resourcepool.status.snapshots import fetch_all

MAX_NAMES_PER_KIND = 1_000


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
    matching = {held.process for held in _held(Q(holder__startswith=f"{holder}/"))} if holder else set()
    return {process for process in matching if INCARNATION.fullmatch(process)}


def held_by(processes: Iterable[str]) -> list[HeldName]:
    """Return the names that these processes hold; three queries. Raises DatabaseUnavailable."""
    wanted, matches = set(processes), Q(pk__in=[])
    for process in wanted:
        matches |= Q(holder__contains=f"/{process}.")
    return [held for held in _held(matches) if held.process in wanted] if wanted else []


def _held(which: Q) -> list[HeldName]:
    counts = Counter[tuple[str, LockKind, str, str]]()
    for kind in KINDS:
        rows = kind.rows().filter(HELD).filter(which).values_list("name", "holder").order_by("name", "holder")
        for name, holder, count in fetch_all(rows.annotate(count=Count("pk"))[:MAX_NAMES_PER_KIND]):
            counts[parse_holder(holder)[0], kind, name, short_holder(holder)] += count
    return [HeldName(kind, name, count, process, by) for (process, kind, name, by), count in counts.items()]

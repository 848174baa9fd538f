"""What one process holds of locks, semaphores and read-write locks."""

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

MAX_NAMES_PER_KIND = 1_000  # of each kind


@dataclass(frozen=True, slots=True)
class HeldName:
    """A name of which a process holds something; ``process``: what tells it from all others; ``who``: for people."""

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
    """Return the 8 hexadecimal digits of each process that may be meant; of those that hold something.

    Args:
        holder: as lists show it; or these digits; or how it begins, up to a slash: ``host/pid``, or ``host``.

    Raises:
        DatabaseUnavailable: they cannot be read.
    """
    holder = holder.strip().rstrip("/")
    known = parse_holder(holder)[0] if "/" in holder else holder
    if INCARNATION.fullmatch(known):
        return {one.process for one in held_by([known])}
    found = {one.process for one in _held(Q(holder__startswith=f"{holder}/"))} if holder else set()
    return {process for process in found if INCARNATION.fullmatch(process)}


def held_by(processes: Iterable[str]) -> list[HeldName]:
    """Return what these hold, by process and name: three statements; raises DatabaseUnavailable."""
    wanted, theirs = set(processes), Q(pk__in=[])
    for process in wanted:
        theirs |= Q(holder__contains=f"/{process}.")
    return [one for one in _held(theirs) if one.process in wanted] if wanted else []


def _held(which: Q) -> list[HeldName]:
    counts = Counter[tuple[str, LockKind, str, str]]()
    for kind in KINDS:
        rows = kind.rows().filter(HELD).filter(which).values_list("name", "holder").order_by("name", "holder")
        for name, holder, count in fetch_all(rows.annotate(count=Count("pk"))[:MAX_NAMES_PER_KIND]):
            counts[parse_holder(holder)[0], kind, name, short_holder(holder)] += count
    return [HeldName(kind, name, count, process, by) for (process, kind, name, by), count in counts.items()]

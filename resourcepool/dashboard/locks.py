"""What the dashboard shows of locks, semaphores and read-write locks: what is waited for, and circles."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from resourcepool.dashboard.links import Links
from resourcepool.locks.models import NUMBER
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.names import LockStatus
from resourcepool.status.locks.standing import LocksStanding, first_holders, standing

SYSTEMS = {"locks": LockKind.LOCK, "semaphores": LockKind.SEMAPHORE, "rwlocks": LockKind.RWLOCK}


@dataclass(frozen=True, slots=True)
class LockRow:
    """One name that is waited for.

    Attributes:
        state: "up", or "dead" (part of a deadlock), for the style sheet.
        page: its address, or "".
        holders: the first of them, for people.
    """

    id: str
    one: LockStatus
    state: str
    page: str
    holders: str


@dataclass(frozen=True, slots=True)
class LockPanel:
    """How locks stand; ``every``: (name of a kind, address of the list of those that are held)."""

    found: LocksStanding = field(default_factory=LocksStanding)
    rows: Sequence[LockRow] = ()
    every: Sequence[tuple[str, str]] = ()

    @property
    def has_any(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.found.holders or self.rows)


def lock_panel(links: Links, systems: Collection[str]) -> LockPanel:
    """Return how the kinds stand that may be told: three queries if nobody waits, fifteen at most, none if none may."""
    kinds = [kind for name, kind in SYSTEMS.items() if name in systems]
    if not kinds:
        return LockPanel()
    found = standing(kinds)
    certain = [cycle for cycle in found.cycles if cycle.is_certain]
    rows = []
    for number, one in enumerate(found.waited):
        state = "dead" if any(cycle.is_about(one.kind, one.name) for cycle in certain) else "up"
        rows.append(LockRow(f"rpl{number}", one, state, _page(links, one), first_holders(one)))
    lists = [
        (str(kind.model._meta.verbose_name_plural), links.list(kind.model, standing="held")) for kind in kinds
    ]
    return LockPanel(found, rows, [(name, address) for name, address in lists if address])


def _page(links: Links, one: LockStatus) -> str:
    return links.page(one.kind.model, f"{one.name}{NUMBER}0" if one.kind.has_permits else one.name)

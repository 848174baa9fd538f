"""What the dashboard shows of locks and their relatives: what is waited for, what stands, and circles."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from resourcepool.dashboard.links import Links
from resourcepool.dashboard.places import Panel, Row
from resourcepool.locks.models import NUMBER, Notification
from resourcepool.status.locks.conditions import KINDS, put
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.names import LockStatus, locks
from resourcepool.status.locks.standing import LocksStanding, standing

SYSTEMS = {"locks": LockKind.LOCK, "semaphores": LockKind.SEMAPHORE, "rwlocks": LockKind.RWLOCK}
SHOWN = 20  # conditions and barriers


class LockPanel(NamedTuple):
    """``every``: (name of a kind, address of the list of those that are held); a row is "dead" in a deadlock."""

    found: LocksStanding
    rows: Sequence[Row] = ()
    every: Sequence[tuple[str, str]] = ()


def lock_panel(links: Links, systems: Collection[str]) -> LockPanel:
    """Return how the kinds stand that may be told: three queries if nobody waits, fifteen at most, none if none may."""
    kinds = [kind for name, kind in SYSTEMS.items() if name in systems]
    if not kinds:
        return LockPanel(LocksStanding())
    found = standing(kinds)
    certain = [cycle for cycle in found.cycles if cycle.is_certain]
    rows = []
    for number, one in enumerate(found.waited):
        state = "dead" if any(cycle.is_about(one.kind, one.name) for cycle in certain) else "up"
        rows.append(Row(f"rpl{number}", one, _page(links, one), state))
    lists = [(kind.model._meta.verbose_name_plural, links.list(kind.model, standing="held")) for kind in kinds]
    return LockPanel(found, rows, [(str(name), address) for name, address in lists if address])


def _page(links: Links, one: LockStatus) -> str:
    return links.page(one.kind.model, f"{one.name}{NUMBER}0" if one.kind.has_permits else one.name)


def condition_panel(links: Links) -> Panel:
    """Return how the first conditions and barriers stand: four queries, one if there is none."""
    page = locks(kind=KINDS, limit=SHOWN)
    rows = [
        Row(f"rpw{number}", one, links.page(Notification, put(one.kind, one.name)))
        for number, one in enumerate(page.locks)
    ]
    return Panel(rows, bool(page.after), links.list(Notification) if page.after else "")

"""What the dashboard shows of locks and their relatives: what is waited for, what stands, and circles."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from resourcepool.dashboard.containers import Panel, Row
from resourcepool.dashboard.links import Links
from resourcepool.locks.models import NUMBER_MARK, Notification
from resourcepool.status.locks.conditions import KINDS, put
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.lock_status import LockStatus, locks
from resourcepool.status.locks.summary import LocksSummary, summary

KIND_OF_SYSTEM = {"locks": LockKind.LOCK, "semaphores": LockKind.SEMAPHORE, "rwlocks": LockKind.RWLOCK}
MAX_CONDITIONS_SHOWN = 20  # conditions and barriers


class LockPanel(NamedTuple):
    """``every``: (name of a kind, address of the list of those that are held); a row is "dead" in a deadlock."""

    found: LocksSummary
    rows: Sequence[Row] = ()
    every: Sequence[tuple[str, str]] = ()


def lock_panel(links: Links, systems: Collection[str]) -> LockPanel:
    """Return how the kinds stand that may be told: three queries if nobody waits, fifteen at most, none if none may."""
    kinds = [kind for name, kind in KIND_OF_SYSTEM.items() if name in systems]
    if not kinds:
        return LockPanel(LocksSummary())
    found = summary(kinds)
    certain = [cycle for cycle in found.cycles if cycle.is_certain]
    rows = []
    for number, one in enumerate(found.waited):
        state = "dead" if any(cycle.is_about(one.kind, one.name) for cycle in certain) else "up"
        rows.append(Row(f"rpl{number}", one, _page(links, one), state))
    lists = [
        (kind.model._meta.verbose_name_plural, links.changelist(kind.model, status="held")) for kind in kinds
    ]
    return LockPanel(found, rows, [(str(name), address) for name, address in lists if address])


def _page(links: Links, one: LockStatus) -> str:
    return links.change_page(one.kind.model, f"{one.name}{NUMBER_MARK}0" if one.kind.has_permits else one.name)


def condition_panel(links: Links) -> Panel:
    """Return how the first conditions and barriers stand: four queries, one if there is none."""
    page = locks(kind=KINDS, limit=MAX_CONDITIONS_SHOWN)
    rows = [
        Row(f"rpw{number}", one, links.change_page(Notification, put(one.kind, one.name)))
        for number, one in enumerate(page.locks)
    ]
    return Panel(rows, bool(page.after), links.changelist(Notification) if page.after else "")

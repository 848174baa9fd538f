"""The dashboard panels of locks, with waiters and wait cycles, and of conditions and barriers."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from resourcepool.dashboard.containers import Row
from resourcepool.dashboard.links import Links
from resourcepool.locks.models import NUMBER_MARK
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.lock_status import LockStatus, locks
from resourcepool.status.locks.summary import LocksSummary, summary

KIND_OF_SYSTEM = {"locks": LockKind.LOCK, "semaphores": LockKind.SEMAPHORE, "rwlocks": LockKind.RWLOCK}
NOTIFYING_SYSTEMS = {"conditions": LockKind.CONDITION, "barriers": LockKind.BARRIER}
MAX_CONDITIONS_SHOWN = 20  # including barriers


class LockPanel(NamedTuple):
    """``every``: (kind, URL of the list of held names). The state of a row in a deadlock is "dead"."""

    summary: LocksSummary
    rows: Sequence[Row] = ()
    every: Sequence[tuple[str, str]] = ()


class ConditionPanel(NamedTuple):
    """``every``: (kind, URL of its list) if there are more rows than shown."""

    rows: Sequence[Row] = ()
    every: Sequence[tuple[str, str]] = ()


def lock_panel(links: Links, systems: Collection[str]) -> LockPanel:
    """Return the panel of the kinds that the user may see: three queries without waiters, fifteen at most."""
    kinds = [kind for name, kind in KIND_OF_SYSTEM.items() if name in systems]
    if not kinds:
        return LockPanel(LocksSummary())
    found = summary(kinds)
    deadlocks = [cycle for cycle in found.cycles if cycle.is_certain]
    rows = []
    for number, one in enumerate(found.waited):
        state = "dead" if any(cycle.is_about(one.kind, one.name) for cycle in deadlocks) else "up"
        rows.append(Row(f"rpl{number}", one, _page(links, one), state))
    lists = [
        (kind.model._meta.verbose_name_plural, links.changelist(kind.model, status="held")) for kind in kinds
    ]
    return LockPanel(found, rows, [(str(name), address) for name, address in lists if address])


def _page(links: Links, one: LockStatus) -> str:
    return links.change_page(one.kind.model, f"{one.name}{NUMBER_MARK}0" if one.kind.has_permits else one.name)


def condition_panel(links: Links, systems: Collection[str]) -> ConditionPanel:
    """Return the first conditions and barriers that the user may see: one query without any, six at most."""
    kinds = [kind for name, kind in NOTIFYING_SYSTEMS.items() if name in systems]
    if not kinds:
        return ConditionPanel()
    page = locks(kind=kinds, limit=MAX_CONDITIONS_SHOWN)
    rows = [
        Row(f"rpw{number}", one, links.change_page(one.kind.model, one.name))
        for number, one in enumerate(page.locks)
    ]
    lists = [(kind.model._meta.verbose_name_plural, links.changelist(kind.model)) for kind in kinds]
    return ConditionPanel(rows, [(str(name), address) for name, address in lists if page.after and address])

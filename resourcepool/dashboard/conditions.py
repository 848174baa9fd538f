"""What the dashboard shows of conditions and barriers: who waits, and what stands."""

from collections.abc import Sequence
from dataclasses import dataclass

from resourcepool.dashboard.links import Links
from resourcepool.locks.models import Notification
from resourcepool.status.locks.conditions import KINDS, put
from resourcepool.status.locks.names import LockStatus, locks

SHOWN = 20


@dataclass(frozen=True, slots=True)
class ConditionRow:
    """One name; ``page``: its address, or ""."""

    id: str
    one: LockStatus
    page: str


@dataclass(frozen=True, slots=True)
class ConditionPanel:
    """The first names; ``every``: the address of the list of all, where these are not all, else ""."""

    rows: Sequence[ConditionRow] = ()
    every: str = ""


def condition_panel(links: Links) -> ConditionPanel:
    """Return how the first names stand: four queries, one if there is none."""
    page = locks(kind=KINDS, limit=SHOWN)
    rows = [
        ConditionRow(f"rpw{number}", one, links.page(Notification, put(one.kind, one.name)))
        for number, one in enumerate(page.locks)
    ]
    return ConditionPanel(rows, links.list(Notification) if page.after else "")

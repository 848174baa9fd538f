"""All panels of the dashboard besides the pools; those of locks, and of conditions and barriers."""

from collections.abc import Callable, Iterator, Sequence, Set
from functools import partial
from typing import Any, NamedTuple

from django.contrib.admin import AdminSite
from django.http import HttpRequest

from resourcepool.dashboard.containers import CSS, Drawn, Row, draw
from resourcepool.dashboard.links import Links, can_view
from resourcepool.dashboard.queues import draw_queues
from resourcepool.queues.models import QueueGroup
from resourcepool.status.locks.cycles import KINDS, lock_badge
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.lock_status import LockStatus, locks
from resourcepool.status.locks.summary import LocksSummary, summary
from resourcepool.status.registry import named_systems
from resourcepool.translation import gettext as _

NOTIFYING = (LockKind.CONDITION, LockKind.BARRIER)
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


def draw_locks(links: Links, visible: Set[Any]) -> Drawn | None:
    """Return the panel of the kinds that the user may see: four queries without waiters, 23 at most."""
    kinds = [kind for kind in KINDS if kind.model in visible]
    if not kinds:
        return None
    found = summary(kinds)
    rows = []
    for number, one in enumerate(found.waited):
        badge = lock_badge(one, found.cycles)
        rows.append(Row(f"rpl{number}", one, _page(links, one), CSS.get(badge.level, "up"), badge=badge))
    lists = [
        (kind.model._meta.verbose_name_plural, links.changelist(kind.model, status="held")) for kind in kinds
    ]
    panel = LockPanel(found, rows, [(str(name), address) for name, address in lists if address])
    template = "resourcepool/dashboard/locks.html" if found.holders or rows else ""
    return Drawn(template, panel, {"locks": found}, [("rp-locks", _("Locks"))])


def _page(links: Links, one: LockStatus) -> str:
    return links.change_page(one.kind.model, one.kind.page_key(one.name))


def draw_conditions(links: Links, visible: Set[Any]) -> Drawn | None:
    """Return the first conditions and barriers that the user may see: one query without any, six at most."""
    kinds = [kind for kind in NOTIFYING if kind.model in visible]
    if not kinds:
        return None
    page = locks(kind=kinds, limit=MAX_CONDITIONS_SHOWN)
    rows = [
        Row(f"rpw{number}", one, links.change_page(one.kind.model, one.name), badge=lock_badge(one))
        for number, one in enumerate(page.locks)
    ]
    lists = [(kind.model._meta.verbose_name_plural, links.changelist(kind.model)) for kind in kinds]
    every = [(str(name), address) for name, address in lists if page.after and address]
    template = "resourcepool/dashboard/conditions.html" if rows else ""
    return Drawn(template, ConditionPanel(rows, every), {}, [("rp-conditions", _("Conditions and barriers"))])


Draw = Callable[[Links, Set[Any]], Drawn | None]

# (place, function that draws the panel for users who may view any of these models)
SPECIAL: tuple[tuple[int, Draw, tuple[Any, ...]], ...] = (
    (10, draw_queues, (QueueGroup,)),
    (60, draw_locks, tuple(kind.model for kind in KINDS)),
    (70, draw_conditions, tuple(kind.model for kind in NOTIFYING)),
)


def draw_panels(links: Links, visible: Set[Any]) -> Iterator[Drawn]:
    """Yield the panels, given the models that the user may view, in their order."""
    panels: list[tuple[int, Draw]] = [(order, draw_one) for order, draw_one, _models in SPECIAL]
    panels += [(panel.order, partial(draw, system, panel)) for system, panel in _declared()]
    for _order, draw_one in sorted(panels, key=lambda one: one[0]):
        if drawn := draw_one(links, visible):
            yield drawn


def visible_in_panels(site: AdminSite, request: HttpRequest) -> set[Any]:
    """Return the models of all panels that the user of ``request`` may view."""
    models = {model for _order, _draw, models in SPECIAL for model in models}
    models |= {model for system, _panel in _declared() for model in (*system.viewed, *system.details)}
    return {model for model in models if can_view(site, request, model)}


def _declared() -> list[tuple[Any, Any]]:
    return [(system, system.panel) for system in named_systems().values() if system.panel]

"""All panels of the dashboard besides the pools; those of locks, and of conditions and barriers."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from functools import partial
from typing import Any, NamedTuple

from django.contrib.admin import AdminSite
from django.http import HttpRequest

from resourcepool.dashboard.containers import CSS, Drawn, Row, draw
from resourcepool.dashboard.links import Links, can_view
from resourcepool.dashboard.queues import draw_queues
from resourcepool.queues.models import QueueGroup
from resourcepool.status.locks.cycles import KINDS, Cycle, lock_badge
from resourcepool.status.locks.kinds import NOTIFYING, LockKind
from resourcepool.status.locks.lock_status import LockStatus, locks
from resourcepool.status.locks.summary import LocksSummary, summary
from resourcepool.status.registry import named_systems
from resourcepool.translation import gettext as _

MAX_CONDITIONS_SHOWN = 20  # including barriers


class LockPanel(NamedTuple):
    """Locks, or conditions and barriers. ``every``: (kind, URL of a list that has more rows)."""

    rows: Sequence[Row]
    every: Sequence[tuple[str, str]]
    summary: LocksSummary | None = None


def draw_locks(links: Links, visible: Set[Any]) -> Drawn | None:
    """Return the panel of the kinds that the user may see: four queries without waiters, 23 at most."""
    if not (kinds := [kind for kind in KINDS if kind.model in visible]):
        return None
    found = summary(kinds)
    rows = _rows("rpl", found.waited, links, found.cycles)
    panel = LockPanel(rows, _lists(kinds, links, status="held"), found)
    template = "resourcepool/dashboard/locks.html" if found.holders or rows else ""
    return Drawn(template, panel, {"locks": found}, [("rp-locks", _("Locks"))])


def draw_conditions(links: Links, visible: Set[Any]) -> Drawn | None:
    """Return the first conditions and barriers that the user may see: one query without any, six at most."""
    if not (kinds := [kind for kind in NOTIFYING if kind.model in visible]):
        return None
    page = locks(kind=kinds, limit=MAX_CONDITIONS_SHOWN)
    panel = LockPanel(_rows("rpw", page.locks, links), _lists(kinds, links) if page.after else ())
    template = "resourcepool/dashboard/conditions.html" if page.locks else ""
    return Drawn(template, panel, {}, [("rp-conditions", _("Conditions and barriers"))])


def _rows(html_id: str, locks: Iterable[LockStatus], links: Links, cycles: Collection[Cycle] = ()) -> list[Row]:
    rows = []
    for number, one in enumerate(locks):
        badge, url = lock_badge(one, cycles), links.change_page(one.kind.model, one.kind.page_key(one.name))
        rows.append(Row(f"{html_id}{number}", one, url, CSS.get(badge.level, "up"), badge=badge))
    return rows


def _lists(kinds: Iterable[LockKind], links: Links, **filters: str) -> list[tuple[str, str]]:
    urls = {kind: links.changelist(kind.model, **filters) for kind in kinds}
    return [(str(kind.model._meta.verbose_name_plural), url) for kind, url in urls.items() if url]


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

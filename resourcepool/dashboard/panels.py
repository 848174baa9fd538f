"""All panels of the dashboard besides the pools."""

from collections.abc import Callable, Iterator, Set
from functools import partial
from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest

from resourcepool.dashboard.access import can_view
from resourcepool.dashboard.containers import Drawn, draw
from resourcepool.dashboard.links import Links
from resourcepool.dashboard.locks import NOTIFYING, draw_conditions, draw_locks
from resourcepool.dashboard.queues import draw_queues
from resourcepool.queues.models import QueueGroup
from resourcepool.status.locks.cycles import KINDS
from resourcepool.status.registry import named_systems

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
    models |= {model for system, panel in _declared() for model in (*system.viewed, panel.details) if model}
    return {model for model in models if can_view(site, request, model)}


def _declared() -> list[tuple[Any, Any]]:
    return [(system, system.panel) for system in named_systems().values() if system.panel]

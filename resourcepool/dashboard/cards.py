"""Build the context of the dashboard from the readings in ``status``; the templates only lay it out."""

from collections.abc import Callable, Sequence, Set
from typing import Any

from django.utils.text import capfirst

from resourcepool.dashboard.containers import KEY_PLACEHOLDER, resource_squares
from resourcepool.dashboard.links import Links, visible_jobs
from resourcepool.dashboard.panels import draw_panels
from resourcepool.dashboard.problems import problems
from resourcepool.history.models import Event, open_leaks
from resourcepool.jobs import SWEEP
from resourcepool.proxies.models import Proxy
from resourcepool.resources.state import State, Verdict
from resourcepool.status.alarms import alarms_of, snoozes
from resourcepool.status.event_text import latest_events
from resourcepool.status.internals import jobs
from resourcepool.status.registry import systems
from resourcepool.status.resources.activity import (
    MAX_CELLS,
    Cell,
    ChartRange,
    RecentEvents,
    cells_of,
    recent_events,
    sampled,
)
from resourcepool.status.resources.pools import PoolStatus, pools
from resourcepool.translation import gettext as _

MAX_IN_LINE = 60  # resources whose squares are in the one line of a quiet pool
IMPORT_COMMAND = "manage.py resourcepool_import proxies.csv"


def overview(
    models: Sequence[Any], span: ChartRange, links: Links, visible: Set[Any] = frozenset()
) -> dict[str, Any]:
    """Return the context of the page, with four queries for all pools of one database, and two for each pool.

    Args:
        models: the resource models of the pools.
        span: the time range of the charts.
        links: makes the URLs.
        visible: the models of panels that the user may view. Queues take seven more queries; each other system takes
            five, or one if it is empty; for locks see ``draw_locks``.

    Raises:
        DatabaseError, DatabaseUnavailable: the database does not answer.
    """
    pool_statuses, job_statuses = pools(models), visible_jobs(jobs(), models)
    labels = [pool.label for pool in pool_statuses]
    recent, with_samples = recent_events(labels), sampled(labels, span)
    cards = []
    for number, (model, pool) in enumerate(zip(models, pool_statuses, strict=True)):
        label = pool.label.lower()
        counts = recent.get(label, RecentEvents()) if model.pool.keeps_history else None
        cells = cells_of(model) if 0 < pool.total <= MAX_CELLS else []
        cards.append(
            _card(f"rp{number}", model, pool, cells, links)
            | {
                "recent": counts,  # None: its history is off
                "has_samples": label in with_samples,
                "charts": links.page("charts", pool=pool.label, span=span.value),
            }
        )
    panels = [*draw_panels(links, visible)]
    read = {name: statuses for drawn in panels for name, statuses in drawn.read.items()}
    read |= {
        system.name: system.read()
        for system in systems()
        if system.alarms and system.name not in read and all(map(links.can_view, system.viewed))
    }
    alarms = alarms_of(pool_statuses, job_statuses, open_leaks(labels), read)
    alarmed = {alarm.pool for alarm in alarms}
    for card in cards:
        card["is_busy"] = bool(card["pool"].waiters or card["pool"].label in alarmed)
    partly_out = {pool.label for pool in pool_statuses if pool.counts[State.OUT]}
    shown = [drawn for drawn in panels if drawn.template]
    events = latest_events(labels, visible) if links.can_view(Event) else []
    return {
        "problems": problems(alarms, snoozes() if alarms else {}, links, partly_out),
        "waiters": sum(pool.waiters for pool in pool_statuses),
        "cards": cards,
        "panels": shown,
        "waiting": links.page("waiting"),
        "activity": links.changelist(Event),
        "events": events,
        "sections": [
            *((card["id"], capfirst(card["pool"].title)) for card in cards),
            *(section for drawn in shown for section in drawn.sections),
            *([("rp-events", _("Activity"))] if events else []),
        ],
        "sweep": job_statuses.get(SWEEP),
        "span": span,
    }


def _card(card: str, model: Any, pool: PoolStatus, cells: list[Cell], links: Links) -> dict[str, Any]:
    is_single = pool.total <= MAX_CELLS  # one square per resource
    return {
        "id": card,
        "pool": pool,
        "address": links.changelist(model),
        "waiting": links.page("waiting", of=pool.label) if pool.waiters else "",
        "bad": links.changelist(model, verdict=Verdict.BAD.value),
        "segments": segments(pool, lambda state: links.changelist(model, state=state.value)),
        "squares": resource_squares(cells, links.change_page(model, KEY_PLACEHOLDER), card),
        "is_single": is_single,
        "is_in_line": 0 < pool.total <= MAX_IN_LINE,
        "overdue": sum(cell.is_overdue for cell in cells),
        "hint": _hint(model),
    }


def segments(pool: PoolStatus, address: Callable[[State], str]) -> list[dict[str, Any]]:
    """Return the segments of a pool's bar, one per state, in percent of its width; ``address`` returns their URLs."""
    parts, start = [], 0
    for state, count in pool.counts.items():
        if count:
            position = {"start": f"{100 * start / pool.total:.2f}", "width": f"{100 * count / pool.total:.2f}"}
            parts.append({"state": state, "count": count, "address": address(state), **position})
            start += count
    return parts


def _hint(model: Any) -> str:
    """Return a command that fills an empty pool."""
    if issubclass(model, Proxy):
        return IMPORT_COMMAND
    return f'manage.py shell -c "from {model.__module__} import {model.__name__} as M; M.objects.create(...)"'

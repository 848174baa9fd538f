"""Build the context of the dashboard from the readings in ``status``; the templates only lay it out."""

from collections.abc import Callable, Sequence, Set
from typing import Any

from resourcepool.dashboard.access import visible_jobs
from resourcepool.dashboard.cells import KEY_PLACEHOLDER, proportional_squares, resource_squares
from resourcepool.dashboard.chart import Chart, Series, chart
from resourcepool.dashboard.links import Links
from resourcepool.dashboard.panels import draw_panels
from resourcepool.history.leaks import open_leaks
from resourcepool.jobs import SWEEP
from resourcepool.proxies.models import Proxy
from resourcepool.resources.state import State, Verdict
from resourcepool.status.activity import ChartRange, Point, RecentEvents, recent_events, trends, up_to_now
from resourcepool.status.alarms import alarms_of
from resourcepool.status.grid import MAX_CELLS, Cell, grid
from resourcepool.status.jobs import jobs
from resourcepool.status.pools import PoolStatus, pools
from resourcepool.translation import gettext as _
from resourcepool.waiting.models import Ticket

MAX_ALARMS = 100
IMPORT_COMMAND = "manage.py resourcepool_import proxies.csv"


def overview(
    models: Sequence[Any], span: ChartRange, links: Links, visible: Set[Any] = frozenset()
) -> dict[str, Any]:
    """Return the context of the page, with six queries for all pools if they are in one database.

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
    recent, history = recent_events(labels), trends(labels, span)
    cells = grid(
        [model for model, pool in zip(models, pool_statuses, strict=True) if 0 < pool.total <= MAX_CELLS]
    )
    cards = []
    for number, (model, pool) in enumerate(zip(models, pool_statuses, strict=True)):
        label = pool.label.lower()
        counts = recent.get(label, RecentEvents()) if model.pool.keeps_history else None
        points = up_to_now(history[label], _current_point(pool, counts), span) if any(history[label]) else []
        cards.append(
            _card(f"rp{number}", model, pool, cells.get(pool.label, []), links)
            | {
                "recent": counts,  # None: its history is off
                "charts": charts(points) if points else [],
            }
        )
    panels = [*draw_panels(links, visible)]
    read = {name: statuses for drawn in panels for name, statuses in drawn.read.items()}
    alarms = alarms_of(pool_statuses, job_statuses, open_leaks(labels), read)
    return {
        "alarms": [(alarm, links.for_alarm(alarm)) for alarm in alarms[:MAX_ALARMS]],
        "waiters": sum(pool.waiters for pool in pool_statuses),
        "cards": cards,
        "panels": [drawn for drawn in panels if drawn.template],
        "sweep": job_statuses.get(SWEEP),
        "span": span,
    }


def _card(card: str, model: Any, pool: PoolStatus, cells: list[Cell], links: Links) -> dict[str, Any]:
    is_single = pool.total <= MAX_CELLS  # one square per resource
    return {
        "id": card,
        "pool": pool,
        "address": links.changelist(model),
        "tickets": links.changelist(Ticket, pool=pool.label.lower()) if pool.waiters else "",
        "bad": links.changelist(model, verdict=Verdict.BAD.value),
        "segments": segments(pool, lambda state: links.changelist(model, state=state.value)),
        "squares": resource_squares(cells, links.change_page(model, KEY_PLACEHOLDER), card)
        if is_single
        else proportional_squares(pool.counts),
        "is_single": is_single,
        "each": round(pool.total / 100),
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


def charts(points: Sequence[Point | None]) -> list[Chart]:
    """Return the charts of a pool; None among ``points``: not sampled."""

    def series(name: str, css: str, style: str, column: str) -> Series:
        return Series(name, css, style, [None if point is None else getattr(point, column) for point in points])

    leased = series(_("Leased"), "rp-area-leased", "area", "leased")
    return [
        chart(_("In use"), [leased, series(_("Leased or free"), "rp-line", "line", "capacity")]),
        chart(_("Waiting"), [series(_("Waiting"), "rp-area-waiting", "area", "waiters")]),
        chart(_("Acquired per minute"), [series(_("Acquired"), "rp-area-acquired", "area", "acquired")]),
        chart(_("Lost or expired"), [series(_("Lost or expired"), "rp-bars-lost", "bars", "lost")]),
    ]


def _current_point(pool: PoolStatus, counts: RecentEvents | None) -> Point:
    """Return the pool's state now as the last point of its charts; losses are only counted per sample."""
    return Point(
        leased=pool.counts[State.LEASED],
        capacity=pool.working,
        waiters=pool.waiters,
        acquired=counts.acquired if counts else None,
        lost=None,
    )


def _hint(model: Any) -> str:
    """Return a command that fills an empty pool."""
    if issubclass(model, Proxy):
        return IMPORT_COMMAND
    return f'manage.py shell -c "from {model.__module__} import {model.__name__} as M; M.objects.create(...)"'

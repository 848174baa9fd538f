"""What the dashboard shows, put together from the read side; the templates only lay it out."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from django.utils.translation import gettext as _

from resourcepool.dashboard.access import visible_jobs
from resourcepool.dashboard.cells import KEY_PLACEHOLDER, bands, resource_squares
from resourcepool.dashboard.chart import Chart, Series, chart
from resourcepool.dashboard.containers import KINDS, container_panel
from resourcepool.dashboard.links import Links
from resourcepool.dashboard.locks import condition_panel, lock_panel
from resourcepool.dashboard.queues import panel
from resourcepool.history.leaks import open_leaks
from resourcepool.jobs import SWEEP
from resourcepool.proxies.models import Proxy
from resourcepool.resources.state import State, Verdict
from resourcepool.status.activity import ChartRange, Point, RecentEvents, recent_events, trends, up_to_now
from resourcepool.status.alarms import alarms_of
from resourcepool.status.grid import MAX_CELLS, Cell, grid
from resourcepool.status.jobs import jobs
from resourcepool.status.pools import PoolStatus, pools
from resourcepool.waiting.models import Ticket

MOST_ALARMS = 100
IMPORT = "manage.py resourcepool_import proxies.csv"


def overview(
    models: Sequence[Any], span: ChartRange, links: Links, systems: Collection[str] = ()
) -> dict[str, Any]:
    """Return what the page shows: how the pools of ``models`` stand, with six queries if all are in one database.

    Args:
        systems: of which it tells how they stand, too, of ``access.SYSTEMS``: for queues seven queries more, for each
            of the others five, one if there is none, for locks see ``lock_panel``; with "tasks" and "timers", streams
            and topics are told with the keys and errors of these.

    Raises:
        DatabaseError, DatabaseUnavailable: the database does not answer.
    """
    standing, done = pools(models), visible_jobs(jobs(), models)
    labels = [pool.label for pool in standing]
    happened, history = recent_events(labels), trends(labels, span)
    cells = grid([model for model, pool in zip(models, standing, strict=True) if 0 < pool.total <= MAX_CELLS])
    cards = []
    for number, (model, pool) in enumerate(zip(models, standing, strict=True)):
        label = pool.label.lower()
        seen = happened.get(label, RecentEvents()) if model.pool.keeps_history else None
        points = up_to_now(history[label], _now(pool, seen), span) if any(history[label]) else []
        cards.append(
            _card(f"rp{number}", model, pool, cells.get(pool.label, []), links)
            | {
                "happened": seen,  # None: its history is switched off
                "charts": charts(points) if points else [],
            }
        )
    queues = panel(links) if "queues" in systems else None
    panels = {system: container_panel(links, system, systems) for system in KINDS}
    locks = lock_panel(links, systems)
    read = {system: [row.one for row in found.rows] for system, found in panels.items()}
    alarms = alarms_of(
        *(standing, done, open_leaks(labels), queues.queue_groups if queues else ()),
        *(read["streams"], read["dispensers"], read["topics"], locks.found, read["channels"]),
    )
    return panels | {
        "alarms": [(alarm, links.problem(alarm)) for alarm in alarms[:MOST_ALARMS]],
        "waiters": sum(pool.waiters for pool in standing),
        "cards": cards,
        "queues": queues,
        "locks": locks,
        "conditions": condition_panel(links) if "conditions" in systems else None,
        "sweep": done.get(SWEEP),
        "span": span,
    }


def _card(card: str, model: Any, pool: PoolStatus, cells: list[Cell], links: Links) -> dict[str, Any]:
    is_single = pool.total <= MAX_CELLS  # whether each square is one resource
    return {
        "id": card,
        "pool": pool,
        "address": links.changelist(model),
        "line": links.changelist(Ticket, pool=pool.label.lower()) if pool.waiters else "",
        "bad": links.changelist(model, verdict=Verdict.BAD.value),
        "segments": segments(pool, lambda state: links.changelist(model, state=state.value)),
        "squares": resource_squares(cells, links.change_page(model, KEY_PLACEHOLDER), card)
        if is_single
        else bands(pool.counts),
        "is_single": is_single,
        "each": round(pool.total / 100),
        "hint": _hint(model),  # what to type while the pool is empty
    }


def segments(pool: PoolStatus, address: Callable[[State], str]) -> list[dict[str, Any]]:
    """Return the states of a pool one beside the other, as a bar shows them, in percent of its width."""
    found, before = [], 0
    for state, count in pool.counts.items():
        if count:
            place = {"start": f"{100 * before / pool.total:.2f}", "width": f"{100 * count / pool.total:.2f}"}
            found.append({"state": state, "count": count, "address": address(state), **place})
            before += count
    return found


def charts(points: Sequence[Point | None]) -> list[Chart]:

    def series(name: str, css: str, style: str, column: str) -> Series:
        return Series(name, css, style, [None if point is None else getattr(point, column) for point in points])

    leased = series(_("Leased"), "rp-area-leased", "area", "leased")
    return [
        chart(_("In use"), [leased, series(_("Leased or free"), "rp-line", "line", "capacity")]),
        chart(_("Waiting"), [series(_("Waiting"), "rp-area-waiting", "area", "waiters")]),
        chart(_("Acquired per minute"), [series(_("Acquired"), "rp-area-acquired", "area", "acquired")]),
        chart(_("Lost or expired"), [series(_("Lost or expired"), "rp-bars-lost", "bars", "lost")]),
    ]


def _now(pool: PoolStatus, happened: RecentEvents | None) -> Point:
    return Point(
        leased=pool.counts[State.LEASED],
        capacity=pool.working,
        waiters=pool.waiters,
        acquired=happened.acquired if happened else None,
        lost=None,
    )


def _hint(model: Any) -> str:
    if issubclass(model, Proxy):
        return IMPORT
    return f'manage.py shell -c "from {model.__module__} import {model.__name__} as M; M.objects.create(...)"'

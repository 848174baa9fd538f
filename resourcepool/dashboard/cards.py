"""What the dashboard shows, put together from the read side; the templates only lay it out."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from resourcepool.dashboard.access import visible_jobs
from resourcepool.dashboard.cells import PLACE, bands, squares
from resourcepool.dashboard.chart import Chart, Series, chart
from resourcepool.dashboard.conditions import ConditionPanel, condition_panel
from resourcepool.dashboard.links import Links
from resourcepool.dashboard.locks import LockPanel, lock_panel
from resourcepool.dashboard.places import PlacePanel, place_panel
from resourcepool.dashboard.queues import Panel, panel
from resourcepool.history.leaks import open_leaks
from resourcepool.jobs import SWEEP
from resourcepool.proxies.models import Proxy
from resourcepool.resources.state import State, Verdict
from resourcepool.status.activity import Happenings, Point, Span, happenings, trends, up_to_now
from resourcepool.status.alarms import Alarm, alarms_of
from resourcepool.status.grid import MOST, Cell, grid
from resourcepool.status.jobs import JobStatus, jobs
from resourcepool.status.pools import PoolStatus, pools
from resourcepool.waiting.models import Ticket

MOST_ALARMS = 100
IMPORT = "manage.py resourcepool_import proxies.csv"


@dataclass(frozen=True, slots=True)
class BarSegment:
    """How many are in one state, and where that begins on the bar; ``start`` and ``width`` in percent, as text.

    ``address``: of the list of these; "" when there is none.
    """

    state: State
    count: int
    start: str
    width: str
    address: str


@dataclass(frozen=True, slots=True)
class Card:
    """One pool.

    Attributes:
        id: of the card on the page.
        address: of the list of its resources; "" when there is none.
        line, bad: addresses of the lists of those who wait, and of what was found bad; "" when there is none.
        shares: the states that any resource is in.
        is_single: whether each square is one resource; else one stands for ``each``.
        charts: [] when there is no sample of the time.
        hint: the command to type next when the pool is empty; else "".
        keeps_history: whether ``happened`` tells anything.
    """

    id: str
    pool: PoolStatus
    address: str
    line: str
    bad: str
    segments: list[BarSegment]
    squares: SafeString
    is_single: bool
    each: int
    happened: Happenings
    keeps_history: bool
    charts: list[Chart]
    hint: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The whole page.

    Attributes:
        alarms: what is wrong, each with the address of the list that shows it; "" when there is none.
        waiters: how many wait in all pools.
        queues: None: not for whoever asks.
        streams, dispensers, timers, locks, conditions, channels: empty also where they are not for whoever asks.
    """

    alarms: list[tuple[Alarm, str]]
    waiters: int
    cards: list[Card]
    queues: Panel | None
    streams: PlacePanel
    dispensers: PlacePanel
    timers: PlacePanel
    locks: LockPanel
    conditions: ConditionPanel
    channels: PlacePanel
    sweep: JobStatus | None
    span: Span


def overview(
    models: Sequence[Any],
    span: Span,
    links: Links,
    systems: Collection[str] = (),
) -> Overview:
    """Return how the pools of ``models`` stand: six queries if they are all in one database.

    Args:
        systems: of which it tells how they stand, too, of ``access.SYSTEMS``: for queues seven queries more, for each
            of the others five, one if there is none, for locks see ``lock_panel``; with "tasks" and "timers", streams
            and topics are told with the keys and errors of these.

    Raises:
        DatabaseError, DatabaseUnavailable: the database does not answer.
    """
    standing, done = pools(models), visible_jobs(jobs(), models)
    labels = [pool.label for pool in standing]
    happened, history = happenings(labels), trends(labels, span)
    small = [model for model, pool in zip(models, standing, strict=True) if 0 < pool.total <= MOST]
    cells = grid(small)
    cards = [
        _card(
            number,
            model,
            pool,
            cells.get(pool.label, []),
            happened.get(pool.label.lower(), Happenings()),
            history[pool.label.lower()],
            span,
            links,
        )
        for number, (model, pool) in enumerate(zip(models, standing, strict=True))
    ]
    queues = panel(links) if "queues" in systems else None
    streams, dispensers, topics, channels = (
        place_panel(links, system, systems) for system in ("streams", "dispensers", "topics", "channels")
    )
    locks = lock_panel(links, systems)
    conditions = condition_panel(links) if "conditions" in systems else ConditionPanel()
    alarms = alarms_of(
        standing,
        done,
        open_leaks(labels),
        queues.task_types if queues else (),
        [row.one for row in streams.rows],
        [row.one for row in dispensers.rows],
        [row.one for row in topics.rows],
        locks.found,
        [row.one for row in channels.rows],
    )
    found = [(alarm, links.problem(alarm)) for alarm in alarms[:MOST_ALARMS]]
    waiters = sum(pool.waiters for pool in standing)
    sweep = done.get(SWEEP)
    panels = (streams, dispensers, topics, locks, conditions, channels)
    return Overview(found, waiters, cards, queues, *panels, sweep, span)


def _card(
    number: int,
    model: Any,
    pool: PoolStatus,
    cells: list[Cell],
    happened: Happenings,
    points: list[Point | None],
    span: Span,
    links: Links,
) -> Card:
    card, is_single, keeps_history = f"rp{number}", pool.total <= MOST, model.pool.keeps_history
    return Card(
        id=card,
        pool=pool,
        address=links.list(model),
        line=links.list(Ticket, pool=pool.label.lower()) if pool.waiters else "",
        bad=links.list(model, verdict=Verdict.BAD.value),
        segments=segments(pool, lambda state: links.list(model, state=state.value)),
        squares=squares(cells, links.page(model, PLACE), card) if is_single else bands(pool.counts),
        is_single=is_single,
        each=round(pool.total / 100),
        happened=happened,
        keeps_history=keeps_history,
        charts=charts(up_to_now(points, _now(pool, happened, keeps_history), span)) if any(points) else [],
        hint=_hint(model) if not (pool.total or pool.trouble) else "",
    )


def segments(pool: PoolStatus, address: Callable[[State], str]) -> list[BarSegment]:
    """Return the states of a pool one beside the other, as a bar shows them; ``address`` tells where each leads."""
    found, before = [], 0
    for state, count in pool.counts.items():
        if count:
            start, width = 100 * before / pool.total, 100 * count / pool.total
            found.append(BarSegment(state, count, f"{start:.2f}", f"{width:.2f}", address(state)))
            before += count
    return found


def charts(points: Sequence[Point | None]) -> list[Chart]:
    """Return the charts of a pool."""

    def series(name: str, css: str, style: str, column: str) -> Series:
        return Series(name, css, style, [None if point is None else getattr(point, column) for point in points])

    return [
        chart(
            _("In use"),
            [
                series(_("Leased"), "rp-area-leased", "area", "leased"),
                series(_("Leased or free"), "rp-line", "line", "capacity"),
            ],
        ),
        chart(_("Waiting"), [series(_("Waiting"), "rp-area-waiting", "area", "waiters")]),
        chart(_("Acquired per minute"), [series(_("Acquired"), "rp-area-acquired", "area", "acquired")]),
        chart(_("Lost or expired"), [series(_("Lost or expired"), "rp-bars-lost", "bars", "lost")]),
    ]


def _now(pool: PoolStatus, happened: Happenings, keeps_history: bool) -> Point:
    return Point(
        leased=pool.counts[State.LEASED],
        capacity=pool.working,
        waiters=pool.waiters,
        acquired=happened.acquired if keeps_history else None,
        lost=None,
    )


def _hint(model: Any) -> str:
    if issubclass(model, Proxy):
        return IMPORT
    return f'manage.py shell -c "from {model.__module__} import {model.__name__} as M; M.objects.create(...)"'

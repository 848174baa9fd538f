"""What is aimed at: for every figure a floor and an aim, and whether the run reached them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.medians import ratio
from benchmarks.others import RawLimit
from benchmarks.ours import (
    Spread,
    SpreadHintedByPostgreSQL,
    SpreadHintedByRedis,
    SpreadWithoutHistory,
    Sticky,
)
from benchmarks.plan import CONTENDED, EXHAUSTED, FEW, LARGE, NARROW, NEARLY_FULL
from benchmarks.sketch import ClaimFirst

OURS = "resourcepool"
Bounds = tuple[float, float]  # floor, aim
Cycles = dict[tuple[str, str, str], dict[str, Any]]  # by database, point and contestant

BESIDE_SKETCH: dict[str, dict[str, Bounds]] = {
    str(NEARLY_FULL): {"rate": (0.95, 1.0), "p99": (1.2, 1.0), "processor": (1.6, 1.3)},
    str(EXHAUSTED): {"rate": (0.95, 1.1), "p99": (1.0, 0.8), "processor": (1.4, 1.2)},
}
FIGURES = {"rate": "rate", "p99": "p99 of the wait", "processor": "processor time of the clients for a cycle"}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Attributes:
        bounds: floor and aim; where the aim is below the floor, less is better.
        shown: how a figure is written.
        is_upper: less is better, though floor and aim are the same.
        more: what is said behind the figure.
    """

    what: str
    bounds: Bounds
    value: float
    shown: Callable[[float], str] = "{:.2f}".format
    is_upper: bool = False
    more: str = ""

    def __str__(self) -> str:
        floor, aim = self.bounds
        sign = "<=" if self._less_is_better else ">="
        cells = [self.what, f"{sign} {self.shown(floor)}", f"{sign} {self.shown(aim)}"]
        return f"| {' | '.join([*cells, self.shown(self.value) + self.more, self.verdict])} |"

    @property
    def verdict(self) -> str:
        """Whether floor and aim were reached."""
        floor, aim = self.bounds
        return (
            "reached aim" if self._reaches(aim) else "reached floor" if self._reaches(floor) else "**missed**"
        )

    @property
    def _less_is_better(self) -> bool:
        floor, aim = self.bounds
        return self.is_upper or aim < floor

    def _reaches(self, bound: float) -> bool:
        return self.value <= bound if self._less_is_better else self.value >= bound


def rows(measured: dict[str, Any]) -> Iterator[Row]:
    """Yield a row for everything that is aimed at and was measured, on MariaDB where nothing else is said."""
    cycles = {(one["database"], one["point"], one["contestant"]): one for one in measured["cycles"]}
    yield from _beside_sketch(cycles)
    for point in map(str, NARROW):
        if one := cycles.get(("mysql", point, Spread.name)):
            yield Row(f"{point}: rate against the ideal", (0.92, 0.95), one["rate"] / one["ideal_rate"])
            yield Row(f"{point}: p99 of the wait against the ideal", (1.4, 1.2), one["p99"] / one["ideal_wait"])
    yield from _starts(measured.get("start", []))
    if one := cycles.get(("mysql", str(EXHAUSTED), Spread.name)):
        yield from _exhausted(one)
    yield from _free(cycles)
    for point in map(str, (NEARLY_FULL, EXHAUSTED)):
        ours, other = (cycles.get(("mysql", point, one.name)) for one in (Spread, SpreadWithoutHistory))
        yield from _ratio(f"{point}: rate with history beside without", (0.95, 0.95), ours, other)
    yield from _grants(measured.get("grant", []))
    yield from _others(measured)


def _beside_sketch(cycles: Cycles) -> Iterator[Row]:
    for point, figures in BESIDE_SKETCH.items():
        ours, sketch = (cycles.get(("mysql", point, one.name)) for one in (Spread, ClaimFirst))
        for figure, bounds in figures.items():
            what = f"{point}: {FIGURES[figure]} beside {ClaimFirst.name}"
            yield from _ratio(what, bounds, ours, sketch, figure)
    for point in map(str, CONTENDED):
        ours, sketch = (cycles.get(("postgres", point, one.name)) for one in (Spread, ClaimFirst))
        yield from _ratio(f"{point} on PostgreSQL: rate beside {ClaimFirst.name}", (0.9, 1.0), ours, sketch)


def _starts(starts: list[dict[str, Any]]) -> Iterator[Row]:
    for one in starts:
        if one["contestant"] == Spread.name:
            more = f"; {one['rate']:,.0f} of {one['steady_rate']:,.0f} cycles/s"
            what = f"{one['point']}: the first seconds of all processes beside their steady rate"
            yield Row(what, (0.7, 0.9), one["share"], more=more)


def _exhausted(one: dict[str, Any]) -> Iterator[Row]:
    if one["sessions"]:
        everybody, waiting = EXHAUSTED.processes, EXHAUSTED.processes - EXHAUSTED.rows
        bounds = (2 * everybody, everybody + waiting)
        yield Row(f"{EXHAUSTED}: most sessions at once", bounds, one["sessions"], _count)
    if one["overtaken_by_lease"]:
        more = f"; in the order in which acquire returned {one['overtaken']['max']}"
        what = f"{EXHAUSTED}: places by which a waiter is overtaken, in the order in which rows were given"
        yield Row(what, (8, 4), one["overtaken_by_lease"]["max"], _count, more=more)


def _free(cycles: Cycles) -> Iterator[Row]:
    for kind in (Sticky, Spread):
        for point in map(str, FEW):
            ours, raw = (cycles.get(("mysql", point, one.name)) for one in (kind, RawLimit))
            yield from _ratio(f"{point}, {kind.name}: rate beside the raw limit", (0.45, 0.6), ours, raw)
    large, few = (cycles.get(("mysql", str(point), Spread.name)) for point in (LARGE, FEW[-1]))
    yield from _ratio(f"{LARGE}: rate beside {FEW[-1]}", (0.9, 0.9), large, few)


def _ratio(
    what: str,
    bounds: Bounds,
    ours: dict[str, Any] | None,
    other: dict[str, Any] | None,
    figure: str = "rate",
) -> Iterator[Row]:
    if (value := ratio(ours, other, figure)) is not None:
        yield Row(what, bounds, value)


def _grants(grants: list[dict[str, Any]]) -> Iterator[Row]:
    told = {
        Spread.name: ("polling", (0.005, 0.0038)),
        SpreadHintedByRedis.name: ("hints by Redis", (0.0015, 0.0009)),
        SpreadHintedByPostgreSQL.name: ("hints by NOTIFY, on PostgreSQL", (0.005, 0.003)),
    }
    for one in grants:
        how, bounds = told[one["contestant"]]
        more = f"; p99 {_ms(one['p99'])}"
        yield Row(f"one waiter, {how}: has the row after its release, p50", bounds, one["p50"], _ms, more=more)


def _others(measured: dict[str, Any]) -> Iterator[Row]:
    if waiters := measured.get("waiters"):
        what = f"{waiters['waiters']:,} waiters on an exhausted pool: statements/s"
        yield Row(what, (60, 30), waiters["statements_per_second"], _count)
    if keeper := measured.get("keeper"):
        per_beat = keeper["statements_per_beat"] / keeper["leases"] * 1_000
        what = f"{keeper['leases']:,} leases kept: renewal statements per beat and 1,000"
        yield Row(what, (1, 1), per_beat, "{:.1f}".format, is_upper=True)
        what = f"the same: share of a core, ttl {keeper['ttl']:g} s"
        yield Row(what, (0.05, 0.05), keeper["share_of_a_core"], "{:.1%}".format, is_upper=True)
    ours = [one for one in measured["cycles"] if OURS in one["contestant"]]
    calls, errors = 2 * sum(one["cycles"] for one in ours), sum(one["errors"] for one in ours)
    if calls:
        yield Row(f"callers that saw an error, of {calls:,} calls", (0, 0), errors, _count, is_upper=True)


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1_000:.1f} ms"

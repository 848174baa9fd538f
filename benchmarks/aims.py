"""What is aimed at: for every figure a floor and an aim, and whether the run reached them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.ours import Spread, SpreadHintedByPostgreSQL, SpreadHintedByRedis
from benchmarks.plan import BUSY, EXHAUSTED, FEW, LARGE

OURS = "resourcepool"
RAW_LIMIT = ((0.55, 0.7), (0.55, 0.7), (0.5, 0.65)), ((0.5, 0.6), (0.35, 0.45), (0.28, 0.35))
Bounds = tuple[float, float]  # floor, aim
Cycles = dict[tuple[str, str], dict[str, Any]]  # by point and contestant


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
    cycles = {
        (one["point"], one["contestant"]): one for one in measured["cycles"] if one["database"] == "mysql"
    }
    yield from _waiting(cycles)
    yield from _free(cycles)
    yield from _grants(measured.get("grant", []))
    yield from _others(measured)


def _waiting(cycles: Cycles) -> Iterator[Row]:
    if one := cycles.get((str(EXHAUSTED), Spread.name)):
        yield from _exhausted(f"{EXHAUSTED}, polling", one, (0.75, 0.85), (2.5, 1.8))
    if one := cycles.get((str(EXHAUSTED), SpreadHintedByRedis.name)):
        yield from _exhausted(f"{EXHAUSTED}, hints by Redis", one, (0.82, 0.95), (2.0, 1.3))
    for point in BUSY:
        if one := cycles.get((str(point), Spread.name)):
            yield Row(f"{point}, polling: rate against the ideal", (0.9, 0.95), one["rate"] / one["ideal_rate"])


def _exhausted(what: str, one: dict[str, Any], rate: Bounds, p99: Bounds) -> Iterator[Row]:
    yield Row(f"{what}: rate against the ideal", rate, one["rate"] / one["ideal_rate"])
    yield Row(f"{what}: p99 wait against the ideal", p99, one["p99"] / one["ideal_wait"], "{:.1f}".format)
    if one["overtaken"]:
        more = f"; p99 {one['overtaken']['p99']:.0f}"
        if one["overtaken_by_lease"]:
            more += f"; in the order in which rows were given {one['overtaken_by_lease']['max']}"
        yield Row(
            f"{what}: places by which a waiter is overtaken", (8, 4), one["overtaken"]["max"], _count, more=more
        )


def _free(cycles: Cycles) -> Iterator[Row]:
    for strategy, all_bounds in zip(("sticky", "spread"), RAW_LIMIT, strict=True):
        for point, bounds in zip(FEW, all_bounds, strict=True):
            what = f"`{strategy}` against the raw limit, {point}"
            yield from _ratio(
                what, bounds, cycles, (str(point), f"{OURS}, {strategy}"), (str(point), "raw limit")
            )
    for strategy in ("sticky", "spread"):
        for at in map(str, FEW[1:]):
            what = f"`{strategy}` against naive protocol, {at}"
            yield from _ratio(what, (1.5, 3), cycles, (at, f"{OURS}, {strategy}"), (at, "naive protocol"))
    for strategy in ("sticky", "spread"):
        name = f"{OURS}, {strategy}"
        for at in map(str, FEW):
            what = f"`{strategy}` with history against without, {at}"
            yield from _ratio(what, (0.9, 0.95), cycles, (at, name), (at, f"{name} without history"))
    for strategy in ("sticky", "spread"):
        name = f"{OURS}, {strategy}"
        what = f"`{strategy}`, {LARGE.rows:,} rows against {FEW[2].rows}, {LARGE.processes} processes"
        yield from _ratio(what, (0.9, 0.9), cycles, (str(LARGE), name), (str(FEW[2]), name))


def _ratio(
    what: str, bounds: Bounds, cycles: Cycles, ours: tuple[str, str], other: tuple[str, str]
) -> Iterator[Row]:
    mine, theirs = cycles.get(ours), cycles.get(other)
    if mine and theirs and theirs["rate"]:
        yield Row(what, bounds, mine["rate"] / theirs["rate"])


def _grants(grants: list[dict[str, Any]]) -> Iterator[Row]:
    told = {
        Spread.name: ("polling", (0.030, 0.015)),
        SpreadHintedByRedis.name: ("hints by Redis", (0.005, 0.003)),
        SpreadHintedByPostgreSQL.name: ("hints by NOTIFY, on PostgreSQL", (0.005, 0.003)),
    }
    for one in grants:
        how, bounds = told[one["contestant"]]
        more = f"; p99 {_ms(one['p99'])}"
        yield Row(f"one waiter, {how}: has the row after its release, p50", bounds, one["p50"], _ms, more=more)


def _others(measured: dict[str, Any]) -> Iterator[Row]:
    if waiters := measured.get("waiters"):
        what = f"{waiters['waiters']:,} waiters on an exhausted pool: statements/s"
        yield Row(what, (200, 50), waiters["statements_per_second"], _count)
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

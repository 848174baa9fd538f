"""The tables of a run as Markdown, and whether it was sound."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import aims
from benchmarks.medians import ratio
from benchmarks.run import BESIDE

DATABASES = {"mysql": "MariaDB", "oracle_mysql": "MySQL", "postgres": "PostgreSQL", "sqlite": "SQLite"}


def tables(measured: dict[str, Any]) -> str:
    """Return everything as Markdown."""
    lines = [*_about(measured), "", *_aims(measured), *_beside(measured["cycles"])]
    for database, name in DATABASES.items():
        results = [one for one in measured["cycles"] if one["database"] == database]
        lines += _cycles(name, [one for one in results if "ideal_rate" not in one])
        for point in dict.fromkeys(one["point"] for one in results if "ideal_rate" in one):
            lines += _waiting(name, [one for one in results if one["point"] == point])
    return "\n".join([*lines, "", *_fresh(measured)]).rstrip() + "\n"


def is_sound(measured: dict[str, Any]) -> bool:
    """Tell whether everything ran, and no caller of ours saw an error; fast or slow is for people to judge."""
    ours = [one for one in measured["cycles"] if aims.OURS in one["contestant"]]
    return all(one["cycles"] and not one["errors"] for one in ours)


def put_between_marks(page: Path, name: str, text: str) -> None:
    """Replace what stands between the two marks of this name on ``page``."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = page.read_text().partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}\n{text}{end}{after}")


def _about(measured: dict[str, Any]) -> Iterator[str]:
    machine, servers = measured["machine"], measured["servers"]
    yield ", ".join([*machine.values()][:3]) + "."
    versions = [
        f"Python {machine['python']}",
        f"Django {machine['django']}",
        f"mysqlclient {machine['mysqlclient']}",
    ]
    yield ", ".join([*servers.values(), *versions]) + "."
    rounds, seconds, warm_up = (measured[name] for name in ("rounds", "seconds", "warm_up"))
    yield f"{rounds} rounds of {seconds:g} s after {warm_up:g} s to warm up, without waiters half of it."
    yield "Medians; a ratio is the median of the ratios of each round; of maxima the largest."


def _aims(measured: dict[str, Any]) -> Iterator[str]:
    yield "| what | floor | aim | measured | |"
    yield "|---|--:|--:|--:|---|"
    yield from map(str, aims.rows(measured))


def _beside(cycles: list[dict[str, Any]]) -> Iterator[str]:
    """What the other checkout was measured for, in turns with this one."""
    found = {(one["database"], one["point"], one["contestant"]): one for one in cycles}
    others = [(key, one) for key, one in found.items() if key[2].endswith(BESIDE)]
    if others:
        yield from ("", "**This checkout beside the other one**", "")
        yield "| | rate | p99 | processor time a cycle |"
        yield "|---|--:|--:|--:|"
    for (database, point, name), other in others:
        ours = found.get((database, point, name.removesuffix(BESIDE)))
        cells = [ratio(ours, other, figure) for figure in ("rate", "p99", "processor")]
        shown = ["-" if cell is None else f"{cell:.2f}" for cell in cells]
        yield f"| {DATABASES[database]}, {point}, {name.removesuffix(BESIDE)} | {' | '.join(shown)} |"


def _cycles(database: str, results: list[dict[str, Any]]) -> Iterator[str]:
    points = list(dict.fromkeys(one["point"] for one in results))
    if not points:
        return
    cell = {(one["contestant"], one["point"]): one for one in results}
    yield from ("", f"**{database}**, cycles (acquire and release) per second; p99 of acquiring", "")
    yield "| processes on rows | " + " | ".join(points) + " |"
    yield "|---|" + "--:|" * len(points)
    for contestant in dict.fromkeys(one["contestant"] for one in results):
        cells = [cell.get((contestant, point)) for point in points]
        yield f"| {contestant} | " + " | ".join(_cell(one) for one in cells) + " |"


def _cell(one: dict[str, Any] | None) -> str:
    return "-" if one is None else f"{one['rate']:,.0f} ({one['p99'] * 1000:,.1f} ms)"


def _waiting(database: str, results: list[dict[str, Any]]) -> Iterator[str]:
    """One point at which everybody waits; shares are of the ideal."""
    first = results[0]
    ideal = f"{first['ideal_rate']:,.0f} cycles/s and a wait of {first['ideal_wait'] * 1000:,.0f} ms"
    yield from ("", f"**{database}, {first['point']}**; ideal: {ideal}", "")
    yield (
        "| | cycles/s | of ideal | wait p50 | p99 | max | p99 of ideal | processor ms a cycle | statements a cycle |"
        " sessions | overtaken by: p99, max | deadlocks |"
    )
    yield "|---|" + "--:|" * 11
    for one in results:
        waits = [f"{one[name] * 1000:,.0f} ms" for name in ("p50", "p99", "max")]
        cells = [
            f"{one['rate']:,.0f}",
            f"{one['rate'] / one['ideal_rate']:.2f}",
            *waits,
            f"{one['p99'] / one['ideal_wait']:.1f}",
            f"{one['processor'] * 1000:.2f}",
            f"{one['statements']:.1f}" if one["statements"] else "-",
            str(one["sessions"] or "-"),
            _places(one["overtaken"]),
            str(one["deadlocks"]),
        ]
        yield f"| {one['contestant']} | {' | '.join(cells)} |"


def _places(overtaken: dict[str, float] | None) -> str:
    return f"{overtaken['p99']:,.0f}, {overtaken['max']:,.0f}" if overtaken else "-"


def _fresh(measured: dict[str, Any]) -> Iterator[str]:
    if took := measured.get("fresh"):
        ms = {name: f"{seconds * 1000:.1f} ms" for name, seconds in took.items()}
        ours = (took["setup"] - took["setup_without_us"]) * 1000
        yield f"A fresh process on MariaDB: `django.setup()` takes {ms['setup']}, {ours:.0f} ms of it for resourcepool;"
        yield f"connecting {ms['connect']}, the first acquire {ms['first_acquire']}, the first release"
        yield f"{ms['first_release']}, the second acquire {ms['second_acquire']}."

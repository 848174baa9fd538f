"""The tables of a run as Markdown, and whether it was sound."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import aims

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
DATABASES = {"mysql": "MariaDB", "oracle_mysql": "MySQL", "postgres": "PostgreSQL", "sqlite": "SQLite"}


def tables(measured: dict[str, Any]) -> str:
    """Return everything as Markdown."""
    lines = [*_about(measured), "", *_aims(measured)]
    for database, name in DATABASES.items():
        results = [one for one in measured["cycles"] if one["database"] == database]
        lines += _cycles(name, [one for one in results if "ideal_rate" not in one])
        for point in dict.fromkeys(one["point"] for one in results if "ideal_rate" in one):
            lines += _waiting(name, [one for one in results if one["point"] == point])
    return "\n".join([*lines, "", *_starting(measured)]).rstrip() + "\n"


def is_sound(measured: dict[str, Any]) -> bool:
    """Tell whether everything ran, and no caller of ours saw an error; fast or slow is for people to judge."""
    ours = [one for one in measured["cycles"] if aims.OURS in one["contestant"]]
    return all(one["cycles"] and not one["errors"] for one in ours)


def put_between_marks(page: Path, text: str) -> None:
    """Replace what stands between the two marks of ``page``."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{text}{END}{after}")


def _about(measured: dict[str, Any]) -> Iterator[str]:
    machine, servers = measured["machine"], measured["servers"]
    yield ", ".join([*machine.values()][:3]) + "."
    versions = [
        f"Python {machine['python']}",
        f"Django {machine['django']}",
        f"mysqlclient {machine['mysqlclient']}",
    ]
    yield ", ".join([*servers.values(), *versions]) + "."
    yield f"{measured['rounds']} rounds of {measured['seconds']:g} s for each figure; medians, of maxima the largest."


def _aims(measured: dict[str, Any]) -> Iterator[str]:
    yield "| what | floor | aim | measured | |"
    yield "|---|--:|--:|--:|---|"
    yield from map(str, aims.rows(measured))


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
    yield "| | cycles/s | of ideal | wait p50 | p99 | max | p99 of ideal | overtaken by: p99, max | deadlocks |"
    yield "|---|" + "--:|" * 8
    for one in results:
        waits = [f"{one[name] * 1000:,.0f} ms" for name in ("p50", "p99", "max")]
        shares = [f"{one['rate'] / one['ideal_rate']:.2f}", f"{one['p99'] / one['ideal_wait']:.1f}"]
        cells = [
            f"{one['rate']:,.0f}",
            shares[0],
            *waits,
            shares[1],
            _places(one["overtaken"]),
            str(one["deadlocks"]),
        ]
        yield f"| {one['contestant']} | {' | '.join(cells)} |"


def _places(overtaken: dict[str, float] | None) -> str:
    return f"{overtaken['p99']:,.0f}, {overtaken['max']:,.0f}" if overtaken else "-"


def _starting(measured: dict[str, Any]) -> Iterator[str]:
    if took := measured.get("starting"):
        ms = {name: f"{seconds * 1000:.1f} ms" for name, seconds in took.items()}
        ours = (took["setup"] - took["setup_without_us"]) * 1000
        yield f"A fresh process on MariaDB: `django.setup()` takes {ms['setup']}, {ours:.0f} ms of it for resourcepool;"
        yield f"connecting {ms['connect']}, the first acquire {ms['first_acquire']}, the first release"
        yield f"{ms['first_release']}, the second acquire {ms['second_acquire']}."

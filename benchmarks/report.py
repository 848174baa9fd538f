"""The tables of a run, and whether it reached what is aimed at."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.plan import EXHAUSTED

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
OURS = "resourcepool"
IDEAL_RATE, IDEAL_WAIT = 800.0, 0.110  # 40 rows held 50 ms each; 88 waiters in front of everybody
DATABASES = {"mysql": "MariaDB", "postgres": "PostgreSQL", "sqlite": "SQLite"}


def tables(measured: dict[str, Any]) -> str:
    """Return everything as Markdown."""
    lines = [*_about(measured), "", *_targets(measured)]
    for database in dict.fromkeys(one["database"] for one in measured["cycles"]):
        lines += [
            "",
            f"**{DATABASES[database]}**, cycles (acquire and release) per second; p99 of acquiring",
            "",
        ]
        lines += _cycles([one for one in measured["cycles"] if one["database"] == database])
    return "\n".join([*lines, "", *_starting(measured)]).rstrip() + "\n"


def is_sound(measured: dict[str, Any]) -> bool:
    """Tell whether everything ran, and no caller of ours saw an error; fast or slow is for people to judge."""
    return all(one["cycles"] and not one["errors"] for one in measured["cycles"] if OURS in one["contestant"])


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
    yield f"{measured['rounds']} rounds of {measured['seconds']:g} s for each figure; medians."


def _targets(measured: dict[str, Any]) -> Iterator[str]:
    yield "| what | aimed at | measured |"
    yield "|---|---|---|"
    rate = {(one["point"], one["contestant"]): one for one in measured["cycles"] if one["database"] == "mysql"}
    for point in ("1 on 40", "8 on 40", "32 on 40"):
        yield from _ratio(f"`sticky` against the raw limit, {point}", 0.55, rate, point, "sticky", "raw limit")
    yield from _ratio("`spread` against the raw limit, 32 on 40", 0.3, rate, "32 on 40", "spread", "raw limit")
    yield from _ratio(
        "`spread` against document 000, 32 on 40", 1.5, rate, "32 on 40", "spread", "document 000"
    )
    for strategy in ("sticky", "spread"):
        small, large = (rate.get((f"32 on {rows}", f"{OURS}, {strategy}")) for rows in ("40", "100,000"))
        if small and large:
            ratio = large["rate"] / small["rate"]
            yield f"| `{strategy}`, 100,000 rows against 40, 32 processes | >= 0.9 | {ratio:.2f} |"
    for point in ("1 on 40", "8 on 40", "32 on 40"):
        for strategy in ("sticky", "spread"):
            without, having = (rate.get((point, f"{OURS}, {strategy}{more}")) for more in ("", " with history"))
            if without and having:
                ratio = having["rate"] / without["rate"]
                yield f"| `{strategy}` with history against without, {point} | >= 0.75 | {ratio:.2f} |"
    waited = rate.get((str(EXHAUSTED), f"{OURS}, spread"))
    if waited:
        yield f"| {EXHAUSTED}: rate against the ideal 800/s | >= 0.9 | {waited['rate'] / IDEAL_RATE:.2f} |"
        yield f"| {EXHAUSTED}: p99 wait against the ideal 110 ms | <= 1.5 | {waited['p99'] / IDEAL_WAIT:.1f} |"
        yield f"| {EXHAUSTED}: overtakings by more than 50 ms | 0 | {waited['overtakings']:,} of {waited['grants']:,} |"
    if waiters := measured.get("waiters"):
        asked = waiters["statements_per_second"]
        yield f"| {waiters['waiters']:,} waiters on an exhausted pool: statements/s | <= 500 | {asked:.0f} |"
    if keeper := measured.get("keeper"):
        per_beat = keeper["statements_per_beat"] / keeper["leases"] * 1_000
        yield f"| {keeper['leases']:,} leases kept: renewal statements per beat and 1,000 | <= 1 | {per_beat:.1f} |"
        yield f"| the same: share of a core, ttl {keeper['ttl']:g} s | <= 5 % | {keeper['share_of_a_core']:.1%} |"
    ours = [one for one in measured["cycles"] if OURS in one["contestant"]]
    calls, errors = 2 * sum(one["cycles"] for one in ours), sum(one["errors"] for one in ours)
    yield f"| callers that saw an error, of {calls:,} calls | 0 | {errors} |"


def _ratio(what: str, aim: float, rate: dict[Any, Any], point: str, ours: str, other: str) -> Iterator[str]:
    mine, theirs = rate.get((point, f"{OURS}, {ours}")), rate.get((point, other))
    if mine and theirs:
        yield f"| {what} | >= {aim:g} | {mine['rate'] / theirs['rate']:.2f} |"


def _cycles(results: list[dict[str, Any]]) -> Iterator[str]:
    points = list(dict.fromkeys(one["point"] for one in results))
    cell = {(one["contestant"], one["point"]): one for one in results}
    yield "| processes on rows | " + " | ".join(points) + " |"
    yield "|---|" + "--:|" * len(points)
    for contestant in dict.fromkeys(one["contestant"] for one in results):
        cells = [cell.get((contestant, point)) for point in points]
        yield f"| {contestant} | " + " | ".join(_cell(one) for one in cells) + " |"


def _cell(one: dict[str, Any] | None) -> str:
    return "-" if one is None else f"{one['rate']:,.0f} ({one['p99'] * 1000:,.1f} ms)"


def _starting(measured: dict[str, Any]) -> Iterator[str]:
    if took := measured.get("starting"):
        ms = {name: f"{seconds * 1000:.1f} ms" for name, seconds in took.items()}
        ours = (took["setup"] - took["setup_without_us"]) * 1000
        yield f"A fresh process on MariaDB: `django.setup()` takes {ms['setup']}, {ours:.0f} ms of it for resourcepool;"
        yield f"connecting {ms['connect']}, the first acquire {ms['first_acquire']}, the first release"
        yield f"{ms['first_release']}, the second acquire {ms['second_acquire']}."

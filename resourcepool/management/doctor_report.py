"""What the doctor found, as text."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.text import Text

from resourcepool.management.layout import name_value_lines
from resourcepool.safety.doctor import Examination
from resourcepool.safety.problem import Problem

INDENT = " " * 11
STYLES = {"unsafe": "bold red", "advice": "yellow", "silenced": "dim", "ok": "green"}


def as_text(project: Sequence[Problem], examined: Sequence[Examination]) -> Iterator[Any]:
    """Yield the findings about the project and about each database, and the verdict at the end."""
    if project:
        yield from ["Project", *(part for problem in project for part in _problem(problem)), ""]
    for one in examined:
        yield f"Database {one.database!r}: {one.server or 'no answer'}"
        for problem in one.findings:
            yield from _problem(problem)
        for said in [*one.passed, *_measured(one)]:
            yield _line("ok", said)
        yield ""
    yield _verdict([problem.level for problem in [*project, *(p for one in examined for p in one.findings)]])


def _problem(problem: Problem) -> Iterator[Any]:
    about = "" if problem.about.startswith("database ") else f"{problem.about}: "
    yield _line(problem.level, f"{about}{problem.message}")
    if problem.level != "silenced":
        for said in (problem.hint, f"{problem.id}, {problem.link}"):
            if said:
                yield f"{INDENT}{said}"  # not broken: it may be something to paste


def _line(level: str, said: str) -> Any:
    return name_value_lines(
        [(level.upper() if level == "unsafe" else level, said)], width=9, style=STYLES[level]
    )


def _measured(one: Examination) -> Iterator[str]:
    if one.distance is not None:
        ahead = "ahead of" if one.distance.offset >= 0 else "behind"
        yield (
            f"a round trip takes {_ms(one.distance.round_trip)}; the server's clock is {_ms(abs(one.distance.offset))}"
            f" (+-{_ms(one.distance.offset_error)}) {ahead} this host's, which leases do not mind"
        )
    if one.commits is not None:
        slow = f"one in a hundred more than {_ms(one.commits.p99)} ({one.commits.count} measured)"
        yield f"a commit takes {_ms(one.commits.median)}, {slow}"
    by_model: dict[str, list[str]] = {}
    for statement in one.statements or ():
        if statement.problem is None:
            by_model.setdefault(statement.model, []).append(statement.name)
    for model, names in by_model.items():
        yield f"{model}: found by index, nothing sorted: {', '.join(names)}"
    for leases in one.leases or ():
        yield f"{leases.model}: {leases.live:,} leased, {leases.expired:,} ran out and not taken again yet"
    if one.tickets is not None:
        yield f"{one.tickets.live:,} waiting, {one.tickets.orphaned:,} tickets left behind by the dead"


def _verdict(levels: Sequence[str]) -> Text:
    unsafe, advice, silenced = (levels.count(level) for level in ("unsafe", "advice", "silenced"))
    if unsafe:
        said = f"UNSAFE: do not rely on leases before the {unsafe} above marked so are mended."
        return Text(said, STYLES["unsafe"])
    safe = f"Safe, if the {silenced} above that your project silences do not matter." if silenced else "Safe."
    return Text(f"{safe} To do better: the {advice} above marked as advice." if advice else safe, STYLES["ok"])


def _ms(seconds: float) -> str:
    return f"{round(seconds * 1_000, 3)} ms"

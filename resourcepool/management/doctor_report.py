"""What the doctor says, for people and for programs."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage
from django.core.management.color import Style

from resourcepool.safety.doctor import Examination
from resourcepool.safety.problem import Problem

WIDTH = 100
INDENT = " " * 11


def from_check(message: CheckMessage) -> Problem:
    """Return what a system check of ours has found as a problem."""
    about = getattr(getattr(message.obj, "_meta", None), "label", message.obj or "settings")
    return Problem(str(message.id).removeprefix("resourcepool."), str(about), message.msg, message.hint or "")


def level(problem: Problem) -> str:
    """Return "unsafe", "advice" or "silenced"."""
    if problem.id in settings.SILENCED_SYSTEM_CHECKS:
        return "silenced"
    return "unsafe" if problem.is_unsafe else "advice"


def is_safe(project: Sequence[Problem], examined: Sequence[Examination]) -> bool:
    """Tell whether leases may be relied on."""
    return "unsafe" not in {level(problem) for problem in _all(project, examined)}


def as_json(project: Sequence[Problem], examined: Sequence[Examination]) -> dict[str, Any]:
    """Return everything; the keys are documented in docs/checks.md and stay as they are."""
    return {
        "safe": is_safe(project, examined),
        "findings": [_problem(problem) for problem in project],
        "databases": [_examination(one) for one in examined],
    }


def as_text(project: Sequence[Problem], examined: Sequence[Examination], style: Style) -> str:
    """Return a list for people, with the verdict at its end."""
    lines = []
    if project:
        lines += ["Project", *(line for problem in project for line in _item(problem, style)), ""]
    for one in examined:
        lines += [f"Database {one.database!r}: {one.product or 'no answer'}", *_body(one, style), ""]
    return "\n".join([*lines, _verdict(list(_all(project, examined)), style)])


def _all(project: Sequence[Problem], examined: Sequence[Examination]) -> Iterator[Problem]:
    yield from project
    for one in examined:
        yield from one.problems


def _problem(problem: Problem) -> dict[str, Any]:
    shown = {name: getattr(problem, name) for name in ("id", "about", "message", "hint", "link")}
    return {"level": level(problem), **shown}


def _examination(one: Examination) -> dict[str, Any]:
    return {
        "database": one.database,
        "server": one.product or None,
        "findings": [_problem(problem) for problem in one.problems],
        "passed": one.passed,
        "round_trip_ms": one.distance and _ms(one.distance.round_trip),
        "clock_offset_ms": one.distance and _ms(one.distance.offset),
        "clock_offset_error_ms": one.distance and _ms(one.distance.offset_error),
        "commits": one.commits and one.commits.count,
        "commit_median_ms": one.commits and _ms(one.commits.median),
        "commit_p99_ms": one.commits and _ms(one.commits.p99),
        "statements": one.statements and [asdict(statement) for statement in one.statements],
        "leases": one.leases and [asdict(leases) for leases in one.leases],
        "waiting": one.tickets and one.tickets.live,
        "orphaned_tickets": one.tickets and one.tickets.orphaned,
    }


def _body(one: Examination, style: Style) -> Iterator[str]:
    for problem in one.problems:
        yield from _item(problem, style)
    for said in [*one.passed, *_measured(one)]:
        yield _line(style.SUCCESS("ok"), "ok", said)


def _measured(one: Examination) -> Iterator[str]:
    if one.distance is not None:
        ahead = "ahead of" if one.distance.offset >= 0 else "behind"
        yield (
            f"a round trip takes {_ms(one.distance.round_trip)} ms; the server's clock is"
            f" {_ms(abs(one.distance.offset))} ms (+-{_ms(one.distance.offset_error)}) {ahead} this host's,"
            " which leases do not mind"
        )
    if one.commits is not None:
        yield (
            f"a commit takes {_ms(one.commits.median)} ms, one in a hundred more than {_ms(one.commits.p99)} ms"
            f" ({one.commits.count} measured)"
        )
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


def _item(problem: Problem, style: Style) -> Iterator[str]:
    how = level(problem)
    word, paint = {
        "unsafe": ("UNSAFE", style.ERROR),
        "advice": ("advice", style.WARNING),
        "silenced": ("silenced", style.NOTICE),
    }[how]
    about = "" if problem.about.startswith("database ") else f"{problem.about}: "
    yield _line(paint(word), word, f"{about}{problem.message}")
    if how != "silenced":
        for said in (problem.hint, f"{problem.id}, {problem.link}"):
            if said:
                yield f"{INDENT}{said}"  # not broken: it may be something to paste


def _line(painted: str, word: str, said: str) -> str:
    first, *rest = textwrap.wrap(said, WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join([f"  {painted}{' ' * (9 - len(word))}{first}", *(f"{INDENT}{line}" for line in rest)])


def _verdict(problems: Sequence[Problem], style: Style) -> str:
    levels = [level(problem) for problem in problems]
    unsafe, advice = levels.count("unsafe"), levels.count("advice")
    if unsafe:
        return style.ERROR(f"UNSAFE: do not rely on leases before the {unsafe} above marked so are mended.")
    silenced = levels.count("silenced")
    safe = f"Safe, if the {silenced} above that your project silences do not matter." if silenced else "Safe."
    return style.SUCCESS(safe if not advice else f"{safe} To do better: the {advice} above marked as advice.")


def _ms(seconds: float) -> float:
    return round(seconds * 1_000, 3)

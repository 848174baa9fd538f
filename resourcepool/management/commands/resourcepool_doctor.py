"""``manage.py resourcepool_doctor``: examine whether the databases are safe for leases, and how fast they are."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.core.checks import CheckMessage, run_checks
from django.core.management.base import CommandError
from django.db import connections
from rich.text import Text

from resourcepool.management.arguments import Argument, arg, flag
from resourcepool.management.base import OperatorCommand
from resourcepool.management.layout import name_value_lines
from resourcepool.safety.diagnosis import used_aliases
from resourcepool.safety.doctor import Examination, examine
from resourcepool.safety.problem import Problem
from resourcepool.translation import gettext as _, gettext_lazy


class Command(OperatorCommand):
    about = gettext_lazy(
        "Examines the databases that hold leases: everything that `check` finds, plus clock, round trip, commit time,"
        " query plans and left-over tickets. Writes only one temporary ticket."
    )
    exit_codes = gettext_lazy(
        "Exit codes: 0 safe, perhaps with advice; 1 unsafe, do not rely on leases; 2 cannot examine;"
        " 130 interrupted."
    )
    example = (
        "manage.py resourcepool_doctor\nmanage.py resourcepool_doctor --database default --no-write --json"
    )

    def arguments(self) -> list[Argument]:
        return [
            arg("--database", _("examine only this database (default: all that hold leases)"), metavar="ALIAS"),
            flag("--json", _("print the result as one JSON object")),
            flag("--no-write", _("only read: do not measure commits")),
        ]

    def run(self, **options: Any) -> None:
        aliases = _aliases(options["database"])
        project = [_problem(message) for message in run_checks(tags=["resourcepool"])]
        examined = [examine(alias, write=not options["no_write"]) for alias in aliases]
        findings = [*project, *(problem for database in examined for problem in database.findings)]
        is_safe = "unsafe" not in {problem.level for problem in findings}
        data = {"safe": is_safe, "findings": project, "databases": examined}
        self.show(data, _as_text(project, examined))
        if not is_safe:
            raise SystemExit(1)


def _problem(message: CheckMessage) -> Problem:
    """Convert the message of a system check."""
    about = getattr(getattr(message.obj, "_meta", None), "label", message.obj or "settings")
    return Problem(str(message.id).removeprefix("resourcepool."), str(about), message.msg, message.hint or "")


def _aliases(wanted: str | None) -> list[str]:
    used = used_aliases()
    if wanted is None:
        return used
    text, known = _("unknown database %(name)r; DATABASES has: %(known)s"), list(connections)
    if wanted in connections:
        text = _("database %(name)r holds no leases; these do: %(known)s")
        known = used
    if wanted not in used:
        raise CommandError(text % {"name": wanted, "known": ", ".join(known)}, returncode=2)
    return [wanted]


INDENT = " " * 11
STYLES = {"unsafe": "bold red", "advice": "yellow", "silenced": "dim", "ok": "green"}


def _as_text(project: Sequence[Problem], examined: Sequence[Examination]) -> Iterator[Any]:
    """Yield the findings about the project and about each database, and the verdict at the end."""
    if project:
        yield from ["Project", *(part for problem in project for part in _problem_lines(problem)), ""]
    for database in examined:
        yield f"Database {database.database!r}: {database.server or 'no answer'}"
        for problem in database.findings:
            yield from _problem_lines(problem)
        for text in [*database.passed, *_measured(database)]:
            yield _line("ok", text)
        yield ""
    findings = [*project, *(problem for database in examined for problem in database.findings)]
    yield _verdict([problem.level for problem in findings])


def _problem_lines(problem: Problem) -> Iterator[Any]:
    about = "" if problem.about.startswith("database ") else f"{problem.about}: "
    yield _line(problem.level, f"{about}{problem.message}")
    if problem.level != "silenced":
        for text in (problem.hint, f"{problem.id}, {problem.link}"):
            if text:
                yield f"{INDENT}{text}"  # never wrapped: it may be a command to paste


def _line(level: str, text: str) -> Any:
    return name_value_lines(
        [(level.upper() if level == "unsafe" else level, text)], width=9, style=STYLES[level]
    )


def _measured(database: Examination) -> Iterator[str]:
    if (distance := database.distance) is not None:
        ahead = "ahead of" if distance.offset >= 0 else "behind"
        yield (
            f"round trip: {_ms(distance.round_trip)}; the server's clock is {_ms(abs(distance.offset))}"
            f" (+-{_ms(distance.offset_error)}) {ahead} this host's, which does not affect leases"
        )
    if (commits := database.commits) is not None:
        slow = f"99th percentile {_ms(commits.p99)} ({commits.count} measured)"
        yield f"commit: median {_ms(commits.median)}, {slow}"
    by_model: dict[str, list[str]] = {}
    for statement in database.statements or ():
        if statement.problem is None:
            by_model.setdefault(statement.model, []).append(statement.name)
    for model, names in by_model.items():
        yield f"{model}: indexes used, no sorting: {', '.join(names)}"
    for leases in database.leases or ():
        yield f"{leases.model}: {leases.live:,} leased, {leases.expired:,} expired and not leased again"
    if (tickets := database.tickets) is not None:
        yield f"{tickets.live:,} waiting, {tickets.orphaned:,} tickets left behind by crashed processes"


def _verdict(levels: Sequence[str]) -> Text:
    unsafe, advice, silenced = (levels.count(level) for level in ("unsafe", "advice", "silenced"))
    if unsafe:
        problems = "the UNSAFE problem" if unsafe == 1 else f"the {unsafe} UNSAFE problems"
        return Text(f"UNSAFE: fix {problems} above before relying on leases.", STYLES["unsafe"])
    safe = f"Safe, apart from the {silenced} silenced above." if silenced else "Safe."
    return Text(
        f"{safe} Improvements: see the {advice} marked as advice above." if advice else safe, STYLES["ok"]
    )


def _ms(seconds: float) -> str:
    return f"{round(seconds * 1_000, 3)} ms"

"""``manage.py resourcepool_doctor``: examine whether the databases are safe for leases, and how fast they are."""

from typing import Any

from django.core.checks import CheckMessage, run_checks
from django.core.management.base import CommandError
from django.db import connections

from resourcepool.management.arguments import Argument, arg, flag
from resourcepool.management.base import OperatorCommand
from resourcepool.management.doctor_report import as_text
from resourcepool.safety.diagnosis import used_aliases
from resourcepool.safety.doctor import examine
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
        self.show(data, as_text(project, examined))
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

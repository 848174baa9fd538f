"""``manage.py resourcepool_doctor``: is this database safe for leases, and how does it do?"""

from typing import Any

from django.core.checks import CheckMessage, run_checks
from django.core.management.base import CommandError
from django.db import connections
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.management.arguments import Argument, arg, flag
from resourcepool.management.base import OperatorCommand
from resourcepool.management.doctor_report import as_text
from resourcepool.safety.doctor import examine
from resourcepool.safety.problem import Problem
from resourcepool.safety.routing import used_aliases


class Command(OperatorCommand):
    about = gettext_lazy(
        "Examines the databases that leases are kept in: whatever `check` would find, and clock, round trip, commit"
        " time, query plans and left-over tickets. Changes nothing but one ticket of its own, which it removes."
    )
    exit_codes = gettext_lazy(
        "Exit codes: 0 safe, perhaps with advice; 1 leases must not be relied on; 2 it could not examine;"
        " 130 interrupted."
    )
    example = (
        "manage.py resourcepool_doctor\nmanage.py resourcepool_doctor --database default --no-write --json"
    )

    def arguments(self) -> list[Argument]:
        return [
            arg("--database", _("only this one; default: all that are used"), metavar="ALIAS"),
            flag("--json", _("print the result as one JSON object")),
            flag("--no-write", _("do not measure commits: only read")),
        ]

    def run(self, **options: Any) -> None:
        aliases = _aliases(options["database"])
        project = [_problem(message) for message in run_checks(tags=["resourcepool"])]
        examined = [examine(alias, write=not options["no_write"]) for alias in aliases]
        found = [*project, *(problem for one in examined for problem in one.findings)]
        is_safe = "unsafe" not in {problem.level for problem in found}
        data = {"safe": is_safe, "findings": project, "databases": examined}
        self.show(data, as_text(project, examined))
        if not is_safe:
            raise SystemExit(1)


def _problem(message: CheckMessage) -> Problem:
    """Return what a system check of ours has found as a problem."""
    about = getattr(getattr(message.obj, "_meta", None), "label", message.obj or "settings")
    return Problem(str(message.id).removeprefix("resourcepool."), str(about), message.msg, message.hint or "")


def _aliases(wanted: str | None) -> list[str]:
    used = used_aliases()
    if wanted is None:
        return used
    text, known = _("there is no database %(name)r in DATABASES; there are: %(known)s"), list(connections)
    if wanted in connections:
        text = _("no leased model is written to database %(name)r; they are written to: %(known)s")
        known = used
    if wanted not in used:
        raise CommandError(text % {"name": wanted, "known": ", ".join(known)}, returncode=2)
    return [wanted]

"""``manage.py resourcepool_doctor``: is this database safe for leases, and how does it do?"""

import json
from typing import Any

from django.core.checks import run_checks
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections

from resourcepool.management.doctor_report import as_json, as_text, from_check, is_safe
from resourcepool.safety.doctor import examine
from resourcepool.safety.routing import used_aliases

INTERRUPTED = 130  # what shells call a process that Ctrl-C has ended


class Command(BaseCommand):
    help = (
        "Examines the databases that leases are kept in: whatever `check` would find, and clock, round trip, commit"
        " time, query plans and left-over tickets. Changes nothing but one ticket of its own, which it removes."
        " Exit code 0: safe, perhaps with advice; 1: leases must not be relied on; 2: it could not examine."
    )
    requires_system_checks = []  # it shows what they find, along with the rest

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--database", metavar="ALIAS", help="only this one; default: all that are used")
        parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
        parser.add_argument("--no-write", action="store_true", help="do not measure commits: only read")

    def handle(self, *args: Any, **options: Any) -> None:
        aliases = _aliases(options["database"])
        try:
            project = [from_check(message) for message in run_checks(tags=["resourcepool"])]
            examined = [examine(alias, write=not options["no_write"]) for alias in aliases]
        except KeyboardInterrupt:
            raise CommandError("interrupted", returncode=INTERRUPTED) from None
        if options["json"]:
            self.stdout.write(json.dumps(as_json(project, examined)))
        else:
            self.stdout.write(as_text(project, examined, self.style))
        if not is_safe(project, examined):
            raise SystemExit(1)


def _aliases(wanted: str | None) -> list[str]:
    used = used_aliases()
    if wanted is None:
        return used
    if wanted not in connections:
        raise CommandError(
            f"there is no database {wanted!r} in DATABASES; there are: {', '.join(connections)}", returncode=2
        )
    if wanted not in used:
        raise CommandError(
            f"no leased model is written to database {wanted!r}; they are written to: {', '.join(used)}",
            returncode=2,
        )
    return [wanted]

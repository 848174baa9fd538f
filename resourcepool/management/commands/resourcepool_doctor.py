"""``manage.py resourcepool_doctor``: is this database safe for leases, and how does it do?"""

import json
from typing import Any

from django.core.checks import run_checks
from django.core.management.base import CommandError, CommandParser
from django.db import connections
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.management.base import INTERRUPTED
from resourcepool.management.doctor_report import as_json, as_text, from_check, is_safe
from resourcepool.management.translated import TranslatedCommand
from resourcepool.safety.doctor import examine
from resourcepool.safety.routing import used_aliases


class Command(TranslatedCommand):
    about = gettext_lazy(
        "Examines the databases that leases are kept in: whatever `check` would find, and clock, round trip, commit"
        " time, query plans and left-over tickets. Changes nothing but one ticket of its own, which it removes."
        " Exit code 0: safe, perhaps with advice; 1: leases must not be relied on; 2: it could not examine."
    )
    requires_system_checks = []  # it shows what they find, along with the rest

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--database", metavar="ALIAS", help=_("only this one; default: all that are used"))
        parser.add_argument("--json", action="store_true", help=_("print the result as one JSON object"))
        parser.add_argument("--no-write", action="store_true", help=_("do not measure commits: only read"))

    def handle(self, *args: Any, **options: Any) -> None:
        aliases = _aliases(options["database"])
        try:
            project = [from_check(message) for message in run_checks(tags=["resourcepool"])]
            examined = [examine(alias, write=not options["no_write"]) for alias in aliases]
        except KeyboardInterrupt:
            raise CommandError(_("interrupted"), returncode=INTERRUPTED) from None
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
            _("there is no database %(name)r in DATABASES; there are: %(known)s")
            % {"name": wanted, "known": ", ".join(connections)},
            returncode=2,
        )
    if wanted not in used:
        raise CommandError(
            _("no leased model is written to database %(name)r; they are written to: %(known)s")
            % {"name": wanted, "known": ", ".join(used)},
            returncode=2,
        )
    return [wanted]

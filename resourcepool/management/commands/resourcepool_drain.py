"""``manage.py resourcepool_drain``: take resources out of service without disturbing who has them, and back."""

import threading
from typing import Any

from django.core.management.base import CommandError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool import options as checked
from resourcepool.database.clock import monotonic
from resourcepool.events import localized
from resourcepool.leases.lock_holders import MAX_ROWS
from resourcepool.management.arguments import Argument, arg, change_arguments, flag, operation_arguments
from resourcepool.management.commands import resourcepool_operate
from resourcepool.management.layout import one_line, render_text
from resourcepool.management.status_report import LEASE_COLUMNS
from resourcepool.management.tables import table
from resourcepool.operations import OPERATIONS, Operation
from resourcepool.resources.state import Status
from resourcepool.status.holders import active_leases, locked

DRAIN, BACK = OPERATIONS["drain"], OPERATIONS["return_to_service"]
PAUSE = 1.0  # seconds between two looks
LONGEST_WAIT = 7 * checked.DAY


class Command(resourcepool_operate.Command):
    about = gettext_lazy(
        "Takes resources out of service: free ones at once, held ones when their lease ends, nobody is disturbed."
        " Given by id, what is out already gets the new reason and end. With --back, returns to service what is out of"
        " service; what is quarantined, reserved or retired only by id."
    )
    example = (
        'manage.py resourcepool_drain proxy 17 18 --reason "new cable" --for 2h\n'
        'manage.py resourcepool_drain proxy --tag eu --where port=3128 --reason "moving" --wait 600\n'
        "manage.py resourcepool_drain proxy --tag eu --back"
    )

    interrupted = gettext_lazy("what was changed stays so; nobody was disturbed")

    def arguments(self) -> list[Argument]:
        ends = _("back in service by itself after so long, e.g. 90s, 15m, 2h, 7d; default: until --back")
        why = _("why, one line for the history; needed, except with --back and --dry-run")
        waits = _("wait until none of them is held any more, at most so long")
        return [
            *self.resources(),
            *operation_arguments([DRAIN], reason=why, duration=ends),
            flag("--back", _("return to service")),
            arg("--wait", waits, type=float, metavar="SECONDS"),
            *change_arguments(),
        ]

    def operation(self, options: dict[str, Any]) -> Operation:
        for option, value in (("for", options["duration"]), ("wait", options["wait"])):
            if options["back"] and value:
                raise CommandError(_("--%s does not go together with --back") % option)
        if options["wait"] is not None:
            checked.seconds("--wait", options["wait"], most=LONGEST_WAIT)
        return BACK if options["back"] else DRAIN

    def targets(self, operation: Operation, rows: Any, *, by_id: bool) -> Any:
        """Leave reserved and retired resources out, unless they are returned by id."""
        targets = super().targets(operation, rows, by_id=by_id)
        return targets if operation is BACK else targets.exclude(status__in=(Status.RESERVED, Status.RETIRED))

    def said(self, operation: Operation, count: int, held: int, *, dry_run: bool) -> str:
        texts = {
            DRAIN.name: (_("Took %s out of service."), _("Would take %s out of service.")),
            BACK.name: (_("Returned %s to service."), _("Would return %s to service.")),
        }
        return texts[operation.name][dry_run] % f"{count:,}"

    def afterwards(self, model: Any, rows: Any, options: dict[str, Any]) -> dict[str, Any]:
        """Wait, if --wait was given."""
        self.waits = options["wait"] is not None
        is_done = self.waits and not options["dry_run"]
        return {"still_held": self._wait(model, rows, options["wait"]) if is_done else None}

    def judge(self, operation: Operation, rows: Any, found: dict[str, Any]) -> None:
        """See ``resourcepool_operate``; where nothing is left to change, one can still wait."""
        if held := found["still_held"]:
            raise CommandError(_("%s still held; they leave service when their leases end") % f"{held:,}")
        if not found["found"] and not (self.waits and rows.exists()):
            state = _("out of service") if operation is BACK else _("in service")
            raise CommandError(_("nothing to do: none of them is %s") % state)

    def _wait(self, model: Any, rows: Any, seconds: float) -> int:
        """Wait until none is held or the time is over; return how many still are."""
        gives_up_at, before = monotonic() + seconds, -1
        while (held := rows.draining().count()) and monotonic() < gives_up_at:
            if held != before:
                before = held
                self.note(_("%s still held") % f"{held:,}")
            threading.Event().wait(min(PAUSE, max(0.0, gives_up_at - monotonic())))
        if not held:
            pks = list(rows.filter(in_service=False).values_list("pk", flat=True)[:MAX_ROWS])
            stuck = locked(model, pks=pks) if pks else []  # somebody may still use them
            for one in stuck:
                self.note(one_line(localized(one), 300))
            return len(stuck)
        pks = list(rows.draining().values_list("pk", flat=True)[:20])
        listed = table(active_leases(model, pks=pks), LEASE_COLUMNS)
        self.note(render_text(self.printer, [listed]))
        return int(held)

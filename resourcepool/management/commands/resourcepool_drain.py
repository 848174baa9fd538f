"""``manage.py resourcepool_drain``: takes resources out of service after their leases, or returns them."""

import threading
from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError

from resourcepool import options as checked
from resourcepool.clock import monotonic
from resourcepool.db.transactions import MAX_ROWS
from resourcepool.events import localized
from resourcepool.management.arguments import Argument, arg, change_arguments, flag, operation_arguments
from resourcepool.management.commands import resourcepool_operate
from resourcepool.management.commands.resourcepool_status import LEASE_COLUMNS
from resourcepool.management.layout import one_line, render_text, table
from resourcepool.operations import OPERATIONS, Operation
from resourcepool.operations.operation import Applied, described
from resourcepool.resources.state import Status
from resourcepool.status.resources.holders import active_leases, locked
from resourcepool.translation import gettext as _, gettext_lazy

DRAIN, BACK = OPERATIONS["drain"], OPERATIONS["return_to_service"]
POLL = 1.0  # seconds
MAX_WAIT = 7 * checked.DAY


class Command(resourcepool_operate.Command):
    about = gettext_lazy(
        "Takes resources out of service: free ones at once, held ones when their lease ends; no lease is"
        " disturbed. Resources that are already out of service get the new reason and end if they are given"
        " by id. With --back, returns resources to service; quarantined, reserved and retired ones only by"
        " id."
    )
    example = (
        'manage.py resourcepool_drain proxy 17 18 --reason "new cable" --for 2h\n'
        'manage.py resourcepool_drain proxy --tag eu --where port=3128 --reason "moving" --wait 600\n'
        "manage.py resourcepool_drain proxy --tag eu --back"
    )

    interrupted = gettext_lazy("completed changes were kept; no lease was disturbed")

    def arguments(self) -> list[Argument]:
        ends = _(
            "return to service automatically after this time, e.g. 90s, 15m, 2h, 7d; default: until --back"
        )
        why = _("reason, one line, kept in the history; required, except with --back and --dry-run")
        waits = _("wait up to SECONDS for current leases to end")
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
                raise CommandError(_("--%s cannot be combined with --back") % option)
        if options["wait"] is not None:
            checked.seconds("--wait", options["wait"], most=MAX_WAIT)
        return BACK if options["back"] else DRAIN

    def changeable(self, operation: Operation, rows: Any) -> Any:
        """Exclude reserved and retired resources, unless they are returned."""
        return rows if operation is BACK else rows.exclude(status__in=(Status.RESERVED, Status.RETIRED))

    def summary(self, applied: Applied, model: Any, names: Sequence[str], *, dry_run: bool) -> list[str]:
        texts = {
            DRAIN.name: (_("Took %s out of service."), _("Would take %s out of service.")),
            BACK.name: (_("Returned %s to service."), _("Would return %s to service.")),
        }
        what = described(model, applied.found if dry_run else applied.changed, names)
        return [texts[applied.operation.name][dry_run] % what]

    def after_change(self, model: Any, rows: Any, options: dict[str, Any]) -> dict[str, Any]:
        """Wait, if --wait was given."""
        self.waits = options["wait"] is not None
        waits_now = self.waits and not options["dry_run"]
        return {"still_held": self._wait(model, rows, options["wait"]) if waits_now else None}

    def check_result(self, operation: Operation, rows: Any, result: dict[str, Any]) -> None:
        """See ``resourcepool_operate``; --wait also works if nothing is left to change."""
        if held := result["still_held"]:
            raise CommandError(_("%s still held; they go out of service when their leases end") % f"{held:,}")
        if not result["found"] and not (self.waits and rows.exists()):
            state = _("out of service") if operation is BACK else _("in service")
            raise CommandError(_("nothing to do: none of them is %s") % state)

    def _wait(self, model: Any, rows: Any, seconds: float) -> int:
        """Wait until none is held or the time is over; return the number of held ones."""
        gives_up_at, before = monotonic() + seconds, -1
        while (held := rows.draining().count()) and monotonic() < gives_up_at:
            if held != before:
                before = held
                self.note(_("%s still held") % f"{held:,}")
            threading.Event().wait(min(POLL, max(0.0, gives_up_at - monotonic())))
        if not held:
            pks = list(rows.filter(in_service=False).values_list("pk", flat=True)[:MAX_ROWS])
            locked_leases = locked(model, pks=pks) if pks else []  # their holders may still use them
            for lease in locked_leases:
                self.note(one_line(localized(lease), 300))
            return len(locked_leases)
        pks = list(rows.draining().values_list("pk", flat=True)[:20])
        listed = table(active_leases(model, pks=pks), LEASE_COLUMNS)
        self.note(render_text(self.printer, [listed]))
        return int(held)

"""``manage.py resourcepool_drain``: takes resources out of service after their leases, or returns them."""

from collections.abc import Mapping
from time import sleep
from typing import Any

from django.core.management.base import CommandError

from resourcepool import options as checked
from resourcepool.clock import monotonic
from resourcepool.management.arguments import Argument, arg, change_arguments, flag, operation_arguments
from resourcepool.management.commands import resourcepool_operate
from resourcepool.management.commands.resourcepool_status import LEASE_COLUMNS
from resourcepool.management.layout import FittedTable, render_text
from resourcepool.operations import OPERATIONS, Operation
from resourcepool.status.resources.holders import active_leases
from resourcepool.translation import gettext as _, gettext_lazy

DRAIN, BACK = OPERATIONS["drain"], OPERATIONS["return_to_service"]
POLL = 1.0  # seconds
MAX_WAIT = 7 * checked.DAY
MAX_LISTED = 20  # leases


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

    def after_change(self, chosen: Mapping[Any, Any], options: dict[str, Any]) -> dict[str, Any]:
        """Wait, if --wait was given."""
        waits = options["wait"] is not None and not options["dry_run"]
        return {"still_held": self._wait(chosen, options["wait"]) if waits else None}

    def check_result(self, operation: Operation, chosen: Mapping[Any, Any], result: dict[str, Any]) -> None:
        """See ``resourcepool_operate``; --wait also works if nothing is left to change."""
        if held := result["still_held"]:
            raise CommandError(_("%s still held; they go out of service when their leases end") % f"{held:,}")
        if held is None or not any(rows.exists() for rows in chosen.values()):
            super().check_result(operation, chosen, result)

    def _wait(self, chosen: Mapping[Any, Any], seconds: float) -> int:
        """Wait until none is held or the time is over; return the number of held ones."""
        until = monotonic() + seconds
        while (held := _held(chosen)) and monotonic() < until:
            sleep(min(POLL, max(0.0, until - monotonic())))
        for model, rows in chosen.items():
            if pks := list(rows.draining().values_list("pk", flat=True)[:MAX_LISTED]):
                leases = FittedTable(active_leases(model, pks=pks), LEASE_COLUMNS)
                self.note(render_text(self.printer, [leases]))
        return held


def _held(chosen: Mapping[Any, Any]) -> int:
    return sum(rows.draining().count() for rows in chosen.values())

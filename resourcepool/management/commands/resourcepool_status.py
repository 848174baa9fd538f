"""``manage.py resourcepool_status``: the status of the pools, the alarms, and the active leases."""

from typing import Any

from resourcepool.history.leaks import open_leaks
from resourcepool.management import arguments, status_report as report, subcommands
from resourcepool.management.arguments import Argument, arg, flag, limit_argument
from resourcepool.management.base import OperatorCommand
from resourcepool.management.layout import more_rows_note, table
from resourcepool.status.alarms import alarms_of, read_systems
from resourcepool.status.jobs import jobs
from resourcepool.status.resources.holders import ActiveLease, active_leases, lease_counts
from resourcepool.status.resources.pools import pools
from resourcepool.translation import gettext as _, gettext_lazy

Leases = list[tuple[list[ActiveLease], int]]


class Command(OperatorCommand):
    about = gettext_lazy(
        "Shows the pools (resources by state, waiters, longest wait), the last runs of the periodic jobs, and alarms."
        " Given a pool, --leases, --holder or --host, it also lists the active leases: holder, start, and when each"
        " expires unless renewed."
    )
    example = (
        "manage.py resourcepool_status\n"
        "manage.py resourcepool_status proxy --host crawler3\n"
        "manage.py resourcepool_status proxy --watch 5"
    )

    leases: Leases | None = None  # None: not requested

    def arguments(self) -> list[Argument]:
        return [
            arg("pool", _("only this pool (app.Model, or Model)"), nargs="?"),
            flag("--leases", _("also list the active leases of every pool")),
            arg("--holder", _("only leases of exactly this holder"), default=""),
            arg("--host", _("only leases of processes on this host"), default=""),
            *subcommands.watch_arguments(),
            limit_argument(50),
        ]

    def run(self, **options: Any) -> None:
        models = arguments.pool_models(options["pool"])
        subcommands.watch(self, lambda: self._report(models, **options), options)
        if (options["holder"] or options["host"]) and not self.leases and options["watch"] is None:
            raise SystemExit(1)

    def _report(self, models: list[Any], **options: Any) -> subcommands.Report:
        is_one = options["pool"] is not None
        if is_one or options["leases"] or options["holder"] or options["host"]:
            self.leases = _leases(models, **options)
        statuses, periodic = pools(models), jobs()
        leaks = open_leaks([pool.label for pool in statuses])
        alarms = alarms_of(statuses, periodic, leaks, {} if is_one else read_systems())
        parts = [*report.pools_as_text(statuses), *([] if is_one else ["", *report.jobs_as_text(periodic)])]
        parts += report.alarms_as_text(alarms)
        data: dict[str, Any] = {"pools": statuses, "jobs": list(periodic.values()), "alarms": alarms}
        if self.leases is None:
            return data, parts
        data["leases"] = [lease for leases, _total in self.leases for lease in leases]
        data["leases_total"] = sum(total for _some, total in self.leases)
        for some, total in self.leases:
            parts += ["", table(some, report.LEASE_COLUMNS), *more_rows_note(len(some), total)]
        return data, parts if self.leases else [*parts, "", _("No active leases.")]


def _leases(models: list[Any], *, holder: str, host: str, limit: int, **_options: Any) -> Leases:
    """Return (leases to show, total) for every pool that has any."""
    totals = lease_counts(models, holder=holder, host=host)
    return [
        (active_leases(model, holder=holder, host=host, limit=limit), total) for model, total in totals.items()
    ]

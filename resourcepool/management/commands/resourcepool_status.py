"""``manage.py resourcepool_status``: how the pools stand, and who holds what."""

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.history.leaks import open_leaks
from resourcepool.management import arguments, watch_mode
from resourcepool.management import status_report as report
from resourcepool.management.arguments import Argument, arg, flag, limit_argument
from resourcepool.management.base import OperatorCommand
from resourcepool.management.layout import more_rows_note
from resourcepool.management.tables import table
from resourcepool.status.alarms import alarms_of
from resourcepool.status.channels import channels
from resourcepool.status.holders import ActiveLease, active_leases, lease_counts
from resourcepool.status.jobs import jobs
from resourcepool.status.locks.summary import summary as locks
from resourcepool.status.pools import pools
from resourcepool.status.queues.queue_groups import queue_groups
from resourcepool.status.work.dispensers import dispensers
from resourcepool.status.work.streams import streams
from resourcepool.status.work.timers import topics

Leases = list[tuple[list[ActiveLease], int]]


class Command(OperatorCommand):
    about = gettext_lazy(
        "Shows each pool: how many are free, leased and away, who waits and for how long, what is wrong; with a pool,"
        " or --leases, --holder or --host, also who holds what, since when, and when it runs out unless renewed."
    )
    example = (
        "manage.py resourcepool_status\n"
        "manage.py resourcepool_status proxy --host crawler3\n"
        "manage.py resourcepool_status proxy --watch 5"
    )

    leases: Leases | None = None  # that were found; None: they were not asked for

    def arguments(self) -> list[Argument]:
        return [
            arg("pool", _("only this pool (app.Model, or Model)"), nargs="?"),
            flag("--leases", _("list the running leases of every pool, too")),
            arg("--holder", _("only leases of exactly this holder"), default=""),
            arg("--host", _("only leases of processes on this host"), default=""),
            *watch_mode.watch_arguments(),
            limit_argument(50),
        ]

    def run(self, **options: Any) -> None:
        models = arguments.pool_models(options["pool"])
        watch_mode.watch(self, lambda: self._look(models, **options), options)
        if (options["holder"] or options["host"]) and not self.leases and options["watch"] is None:
            raise SystemExit(1)

    def _look(self, models: list[Any], **options: Any) -> watch_mode.Report:
        is_one = options["pool"] is not None
        if is_one or options["leases"] or options["holder"] or options["host"]:
            self.leases = _leases(models, **options)
        stand, periodic = pools(models), jobs()
        leaks = open_leaks([pool.label for pool in stand])
        others = () if is_one else (queue_groups(), streams(), dispensers(), topics(), locks(), channels())
        wrong = alarms_of(stand, periodic, leaks, *others)
        parts = [*report.pools_as_text(stand), *([] if is_one else ["", *report.jobs_as_text(periodic)])]
        parts += report.alarms_as_text(wrong)
        data: dict[str, Any] = {"pools": stand, "jobs": list(periodic.values()), "alarms": wrong}
        if self.leases is None:
            return data, parts
        data["leases"] = [one for some, _total in self.leases for one in some]
        data["leases_total"] = sum(total for _some, total in self.leases)
        for some, total in self.leases:
            parts += ["", table(some, report.LEASE_COLUMNS), *more_rows_note(len(some), total)]
        return data, parts if self.leases else [*parts, "", _("No running lease.")]


def _leases(models: list[Any], *, holder: str, host: str, limit: int, **_options: Any) -> Leases:
    """Return (the leases to show, how many there are) for every pool that has any."""
    found = lease_counts(models, holder=holder, host=host)
    return [
        (active_leases(model, holder=holder, host=host, limit=limit), total) for model, total in found.items()
    ]

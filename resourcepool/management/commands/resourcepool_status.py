"""``manage.py resourcepool_status``: the status of the pools, the alarms, and the active leases."""

from collections.abc import Mapping, Sequence
from typing import Any

from resourcepool.events import localized
from resourcepool.history.models import open_leaks
from resourcepool.management import arguments, subcommands
from resourcepool.management.arguments import Argument, arg, flag, limit_argument
from resourcepool.management.base import OperatorCommand
from resourcepool.management.layout import FittedTable, Folded, more_rows_note, one_line
from resourcepool.resources.state import State
from resourcepool.status.alarm import Alarm
from resourcepool.status.alarms import alarms_of, read_systems
from resourcepool.status.internals import JobStatus, jobs
from resourcepool.status.resources.holders import ActiveLease, active_leases, lease_counts
from resourcepool.status.resources.pools import PoolStatus, pools
from resourcepool.status.system import Figure, count, seconds, text, whole
from resourcepool.status.times import ago, timestamp_with_age
from resourcepool.translation import gettext, gettext_lazy as _

MAX_ALARM = 2_000  # characters
Leases = list[tuple[list[ActiveLease], int]]


class Command(OperatorCommand):
    about = _(
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
            arg("pool", gettext("only this pool (app.Model, or Model)"), nargs="?"),
            flag("--leases", gettext("also list the active leases of every pool")),
            arg("--holder", gettext("only leases of exactly this holder"), default=""),
            arg("--host", gettext("only leases of processes on this host"), default=""),
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
        parts = [*pools_as_text(statuses), *([] if is_one else ["", *jobs_as_text(periodic)])]
        parts += alarms_as_text(alarms)
        data: dict[str, Any] = {"pools": statuses, "jobs": list(periodic.values()), "alarms": alarms}
        if self.leases is None:
            return data, parts
        data["leases"] = [lease for leases, _total in self.leases for lease in leases]
        data["leases_total"] = sum(total for _some, total in self.leases)
        for some, total in self.leases:
            parts += ["", FittedTable(some, LEASE_COLUMNS), *more_rows_note(len(some), total)]
        return data, parts if self.leases else [*parts, "", gettext("No active leases.")]


def _leases(models: list[Any], *, holder: str, host: str, limit: int, **_options: Any) -> Leases:
    """Return (leases to show, total) for every pool that has any."""
    totals = lease_counts(models, holder=holder, host=host)
    return [
        (active_leases(model, holder=holder, host=host, limit=limit), total) for model, total in totals.items()
    ]


ALWAYS = (State.FREE, State.LEASED, State.COOLING, State.DRAINING, State.QUARANTINED, State.OUT)
IF_ANY = (State.RESERVED, State.RETIRED)
SHORT_LABELS = {State.COOLING: _("cooling"), State.OUT: _("out")}  # as headings

USE = (
    whole(_("used"), lambda pool: f"{pool.utilisation:.0%}"),
    count(_("waiting"), "waiters"),
    seconds(_("oldest"), lambda pool: pool.oldest_wait if pool.waiters else None),
)
LEASE_COLUMNS = (
    text(_("id"), "row.pk"),
    text(_("resource"), "row"),
    text(_("holder"), "holder"),
    text(_("host"), lambda lease: f"{lease.host} pid {lease.pid}" if lease.pid else lease.host),
    text(_("since"), lambda lease: timestamp_with_age(lease.since, lease.held)),
    seconds(_("expires in"), "expires_in"),
)


def pools_as_text(pools: Sequence[PoolStatus]) -> list[Any]:
    """Return a table of the pools, and the full error, with the command to run, of each that cannot be read."""
    states = [*ALWAYS, *(state for state in IF_ANY if any(pool.counts[state] for pool in pools))]
    columns = [text(_("pool"), "label"), *map(_count_in, states), *USE]
    readable = [pool for pool in pools if not pool.error]
    tables = [FittedTable(readable, columns)] if readable else []
    return [*tables, *(f"{pool.label}: {one_line(localized(pool.error), 300)}" for pool in pools if pool.error)]


def jobs_as_text(jobs: Mapping[str, JobStatus]) -> list[str]:
    lines = [f"{one_line(gettext(name))}: {_last_run(job)}" for name, job in jobs.items()]
    return lines or [gettext("No periodic job has run yet.")]


def alarms_as_text(alarms: Sequence[Alarm]) -> list[Any]:
    """Return a heading and a line for each alarm, with its word in the runbook; nothing without alarms."""
    lines = [
        Folded(f"[{alarm.kind.value}] {one_line(alarm, MAX_ALARM)}", "red" if alarm.is_severe else "yellow")
        for alarm in alarms
    ]
    return ["", gettext("Alarms:"), *lines] if lines else []


def _count_in(state: State) -> Figure:
    return count(SHORT_LABELS.get(state, state.label), lambda pool: pool.counts[state])


def _last_run(job: JobStatus) -> str:
    result = one_line(localized(job.result), 200)
    if job.failed is not None:
        return gettext("failed %(ago)s: %(result)s") % {"ago": ago(job.failed), "result": result}
    if job.done is None:
        return gettext("never finished")
    return gettext("done %(ago)s: %(result)s") % {"ago": ago(job.done), "result": result}

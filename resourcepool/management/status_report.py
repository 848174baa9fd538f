"""The status of the pools, jobs and alarms, and the active leases, as text."""

from collections.abc import Mapping, Sequence
from typing import Any

from resourcepool.events import localized
from resourcepool.management.layout import Column, Folded, counts, one_line, table
from resourcepool.resources.state import State
from resourcepool.status.alarm import Alarm
from resourcepool.status.jobs import JobStatus
from resourcepool.status.resources.pools import PoolStatus
from resourcepool.status.times import ago, duration, timestamp_with_age
from resourcepool.translation import gettext, gettext as _, gettext_lazy

MAX_ALARM = 2_000  # characters
ALWAYS = (State.FREE, State.LEASED, State.COOLING, State.DRAINING, State.QUARANTINED, State.OUT)
IF_ANY = (State.RESERVED, State.RETIRED)
SHORT_LABELS = {State.COOLING: gettext_lazy("cooling"), State.OUT: gettext_lazy("out")}  # as headings

USE = (
    Column(gettext_lazy("used"), lambda pool: f"{pool.utilisation:.0%}", is_number=True),
    counts(gettext_lazy("waiting"), lambda pool: pool.waiters),
    Column(
        gettext_lazy("oldest"), lambda pool: duration(pool.oldest_wait) if pool.waiters else "-", is_number=True
    ),
)
LEASE_COLUMNS = (
    Column(gettext_lazy("id"), lambda lease: lease.row.pk),
    Column(gettext_lazy("resource"), lambda lease: lease.row),
    Column(gettext_lazy("holder"), lambda lease: lease.holder),
    Column(
        gettext_lazy("host"), lambda lease: f"{lease.host} pid {lease.pid}" if lease.pid else lease.host or "-"
    ),
    Column(gettext_lazy("since"), lambda lease: timestamp_with_age(lease.since, lease.held)),
    Column(gettext_lazy("expires in"), lambda lease: duration(lease.expires_in), is_number=True),
)


def pools_as_text(pools: Sequence[PoolStatus]) -> list[Any]:
    """Return a table of the pools, and the full error, with the command to run, of each that cannot be read."""
    states = [*ALWAYS, *(state for state in IF_ANY if any(pool.counts[state] for pool in pools))]
    columns = [Column(_("pool"), lambda pool: pool.label), *map(_count_in, states), *USE]
    readable = [pool for pool in pools if not pool.error]
    tables = [table(readable, columns)] if readable else []
    return [*tables, *(f"{pool.label}: {one_line(localized(pool.error), 300)}" for pool in pools if pool.error)]


def jobs_as_text(jobs: Mapping[str, JobStatus]) -> list[str]:
    lines = [f"{one_line(gettext(name))}: {_last_run(job)}" for name, job in jobs.items()]
    return lines or [_("No periodic job has run yet.")]


def alarms_as_text(alarms: Sequence[Alarm]) -> list[Any]:
    """Return a heading and a line for each alarm, with its word in the runbook; nothing without alarms."""
    lines = [
        Folded(f"[{alarm.kind.value}] {one_line(alarm, MAX_ALARM)}", "red" if alarm.is_severe else "yellow")
        for alarm in alarms
    ]
    return ["", _("Alarms:"), *lines] if lines else []


def _count_in(state: State) -> Column:
    return counts(SHORT_LABELS.get(state, state.label), lambda pool: pool.counts[state])


def _last_run(job: JobStatus) -> str:
    result = one_line(localized(job.result), 200)
    if job.failed is not None:
        return _("failed %(ago)s: %(result)s") % {"ago": ago(job.failed), "result": result}
    if job.done is None:
        return _("never finished")
    return _("done %(ago)s: %(result)s") % {"ago": ago(job.done), "result": result}

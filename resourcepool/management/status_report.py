"""The state of the pools, and who holds what, as text."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext, gettext_lazy
from django.utils.translation import gettext as _
from rich.text import Text

from resourcepool.events import localized
from resourcepool.management.layout import ago, one_line, timestamp_with_age
from resourcepool.management.tables import Column, counts, table
from resourcepool.resources.state import State
from resourcepool.status.alarm import Alarm
from resourcepool.status.jobs import JobStatus
from resourcepool.status.pools import PoolStatus
from resourcepool.status.snapshots import duration

LONGEST = 2_000  # characters of an alarm, which ends with what to do
ALWAYS = (State.FREE, State.LEASED, State.COOLING, State.DRAINING, State.QUARANTINED, State.OUT)
IF_ANY = (State.RESERVED, State.RETIRED)
HEADS = {State.COOLING: gettext_lazy("cooling"), State.OUT: gettext_lazy("out")}  # where the label is long

USE = (
    Column(gettext_lazy("used"), lambda pool: f"{pool.utilisation:.0%}", is_number=True),
    counts(gettext_lazy("waiting"), lambda pool: pool.waiters),
    Column(
        gettext_lazy("oldest"), lambda pool: duration(pool.oldest_wait) if pool.waiters else "-", is_number=True
    ),
)
LEASE_COLUMNS = (
    Column(gettext_lazy("id"), lambda one: one.row.pk),
    Column(gettext_lazy("resource"), lambda one: one.row),
    Column(gettext_lazy("holder"), lambda one: one.holder),
    Column(gettext_lazy("host"), lambda one: f"{one.host} pid {one.pid}" if one.pid else one.host or "-"),
    Column(gettext_lazy("since"), lambda one: timestamp_with_age(one.since, one.held)),
    Column(gettext_lazy("runs out in"), lambda one: duration(one.expires_in), is_number=True),
)


def pools_as_text(pools: Sequence[PoolStatus]) -> list[Any]:
    """Return a table of the pools; one that cannot be read says why, in full: it says what to type."""
    states = [*ALWAYS, *(state for state in IF_ANY if any(pool.counts[state] for pool in pools))]
    columns = [Column(_("pool"), lambda pool: pool.label), *map(_number_in, states), *USE]
    readable = [pool for pool in pools if not pool.error]
    found = [table(readable, columns)] if readable else []
    return [*found, *(f"{pool.label}: {one_line(localized(pool.error), 300)}" for pool in pools if pool.error)]


def jobs_as_text(jobs: Mapping[str, JobStatus]) -> list[str]:
    lines = [f"{one_line(gettext(name))}: {_done(job)}" for name, job in jobs.items()]
    return lines or [_("No periodic job has ever run.")]


def alarms_as_text(alarms: Sequence[Alarm]) -> list[Any]:
    """Return what is wrong, one line each, below a heading; nothing if all is well."""
    lines = [Text(f"  {one_line(one, LONGEST)}", "red" if one.is_severe else "yellow") for one in alarms]
    return ["", _("Problems:"), *lines] if lines else []


def _number_in(state: State) -> Column:
    return counts(HEADS.get(state, state.label), lambda pool: pool.counts[state])


def _done(job: JobStatus) -> str:
    result = one_line(localized(job.result), 200)
    if job.failed is not None:
        return _("failed %(ago)s: %(result)s") % {"ago": ago(job.failed), "result": result}
    if job.done is None:
        return _("never done")
    return _("done %(ago)s: %(result)s") % {"ago": ago(job.done), "result": result}

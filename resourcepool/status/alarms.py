"""Computes the alarms from the status of all systems, and snoozes them; alarms are never stored.

A snooze folds an alarm away on the dashboard for an hour, for all users. It is an event of the history: all see it,
with the name of who did it, and it ends by itself.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from django.db import router

from resourcepool.db.dialect import DbNow
from resourcepool.events import Sentence, localized
from resourcepool.exceptions import CheckerBroken, DatabaseUnavailable
from resourcepool.health_checks.checker import check_intervals
from resourcepool.history.models import MAX_ACTOR, MAX_ROW, Event, open_leaks, storable
from resourcepool.jobs import CHECK, SWEEP
from resourcepool.resources.registry import resource_model
from resourcepool.resources.state import State
from resourcepool.signals import EventKind, alarm_snoozed
from resourcepool.status.alarm import GRAVITY, Alarm, AlarmKind, Thresholds
from resourcepool.status.internals import JobStatus, jobs
from resourcepool.status.registry import systems
from resourcepool.status.resources.pools import PoolStatus, pools
from resourcepool.status.resources.waiting import Lines
from resourcepool.status.snapshots import fetch_all
from resourcepool.status.times import duration
from resourcepool.translation import gettext as _

HOUR = 3_600.0  # seconds
SNOOZED = "alarm"  # pool of the events of snoozes; their row is the id of the alarm
__all__ = ["Alarm", "AlarmKind", "Thresholds", "alarms", "alarms_of", "evaluate"]

NOT_IN_SERVICE = (State.DRAINING, State.OUT, State.RESERVED, State.RETIRED)
BROKEN = f"{CheckerBroken.__name__}: "  # prefix of a check's result when its checker is to blame


def alarms() -> list[Alarm]:
    """Return the current alarms, the worst first."""
    statuses = pools()
    leaked = open_leaks([pool.label for pool in statuses])
    return alarms_of(statuses, jobs(), leaked, read_systems())


def read_systems() -> dict[str, Any]:
    """Return {name of a system that raises alarms: its statuses}."""
    return {system.name: system.read() for system in systems() if system.alarms}


def alarms_of(
    pools: Sequence[PoolStatus],
    jobs: Mapping[str, JobStatus],
    leaked: Mapping[str, int],
    read: Mapping[str, Any] = MappingProxyType({}),
) -> list[Alarm]:
    """Return the alarms by the thresholds of the settings; for the arguments see ``evaluate``."""
    limits = Thresholds.from_settings()
    explanations = {pool.label: _why_late(pool) for pool in pools if _has_late_waiter(pool, limits)}
    return evaluate(pools, jobs, leaked, limits, check_intervals(), read, explanations=explanations)


def evaluate(
    pools: Sequence[PoolStatus],
    jobs: Mapping[str, JobStatus],
    leaked: Mapping[str, int],
    limits: Thresholds,
    checked_every: Mapping[str, float],
    read: Mapping[str, Any] = MappingProxyType({}),
    explanations: Mapping[str, str] = MappingProxyType({}),
) -> list[Alarm]:
    """Return the alarms, the worst first.

    Args:
        leaked: {label of a pool: number of its open leaks}, see ``open_leaks``.
        checked_every: {label of a checked pool: interval of its check, in seconds}.
        read: {name of a system: its statuses}, see ``read_systems``.
        explanations: {label of a pool with a waiter that waits too long: why that waiter is not served}.
    """
    raised = [
        *_of_sweep(jobs.get(SWEEP), limits),
        *_of_jobs(_without_old_checks(jobs, checked_every)),
        *(_of_leaks(label, count) for label, count in leaked.items()),
    ]
    for system in systems():
        if system.alarms and system.name in read:
            raised += system.alarms(read[system.name], limits)
    for pool in pools:
        raised += _of_pool(pool, limits, explanations.get(pool.label, ""))
        raised += _of_checks(pool, checked_every.get(pool.label), jobs.get(f"{CHECK}{pool.label}"))
    return sorted(raised, key=lambda alarm: (GRAVITY[alarm.kind], alarm.pool))


def _has_late_waiter(pool: PoolStatus, limits: Thresholds) -> bool:
    """Whether a waiter has waited too long in a pool with resources in service."""
    return not pool.error and bool(pool.working) and pool.oldest_wait > limits.oldest_wait


def _why_late(pool: PoolStatus) -> str:
    """Return what the longest waiter wants, and why it is not served; "" if that cannot be read."""
    try:
        waiter = Lines([resource_model(pool.label)], ()).longest()
    except DatabaseUnavailable:
        return ""
    if waiter is None:
        return ""
    wanted = _("It wants %s.") % waiter.wants if waiter.wants else ""
    return f"{wanted} {waiter.why}".lstrip()


def _of_pool(pool: PoolStatus, limits: Thresholds, explanation: str) -> Iterator[Alarm]:
    if pool.error:
        yield Alarm(AlarmKind.UNREADABLE, pool.label, _("cannot be read: %s") % localized(pool.error))
    elif pool.waiters and not pool.working:
        text = _(
            "no resource in service; waiters: %(count)d. Return one with `manage.py resourcepool_drain %(pool)s ID"
            " --back`."
        )
        numbers = {"count": pool.waiters, "pool": pool.label}
        yield Alarm(AlarmKind.NOTHING_IN_SERVICE, pool.label, text % numbers)
    elif _has_late_waiter(pool, limits):
        if pool.is_exhausted:
            kind, command = AlarmKind.EXHAUSTED, _("See the holders with `manage.py resourcepool_status %s`.")
            text = _("all %(leased)d leased; waiters: %(count)d, the first for %(wait)s.")
        else:
            kind, command = AlarmKind.STARVED, ""
            text = _(
                "a waiter has waited %(wait)s although resources are free (%(free)d free, %(count)d waiting)."
            )
        free, leased = pool.counts[State.FREE], pool.counts[State.LEASED]
        numbers = {"free": free, "leased": leased, "count": pool.waiters, "wait": duration(pool.oldest_wait)}
        command = command and command % pool.label
        parts = (text % numbers, _not_in_service(pool), explanation, command)
        yield Alarm(kind, pool.label, " ".join(filter(None, parts)))
    if pool.expired:
        text = _("leases that expired without a release: %d; their holders crashed or lost contact.")
        yield Alarm(AlarmKind.EXPIRED, pool.label, text % pool.expired)


def _not_in_service(pool: PoolStatus) -> str:
    """Return how many resources of ``pool`` people took out of service, by state; "" if none."""
    counts = {state: pool.counts[state] for state in NOT_IN_SERVICE if pool.counts[state]}
    listed = ", ".join(f"{count:,} {state.label}" for state, count in counts.items())
    return _("Not in service: %s.") % listed if counts else ""


def _of_checks(pool: PoolStatus, every: float | None, job: JobStatus | None) -> Iterator[Alarm]:
    # Leased resources cannot be checked.
    if every is None or pool.error or not pool.counts[State.FREE]:
        return
    if pool.oldest_check is None:
        problem = _("never checked")
    elif pool.passed_over is not None and pool.passed_over > 3 * every:
        problem = _("free resources unchecked for %s") % duration(pool.passed_over)
    else:
        return
    yield Alarm(AlarmKind.CHECK_STALE, pool.label, _stale(problem, _ran(job, 3 * every), "check"))


def _of_sweep(sweep: JobStatus | None, limits: Thresholds) -> Iterator[Alarm]:
    if sweep is None or sweep.done is None:
        problem = _("The sweep has never finished")
    elif sweep.done > limits.sweep:
        problem = _("The sweep has not finished for %s") % duration(sweep.done)
    else:
        return
    yield Alarm(AlarmKind.SWEEP_STALE, "", _stale(problem, _ran(sweep, limits.sweep), "sweep"))


def _stale(problem: str, ran: str, job: str) -> str:
    """Return the text of a problem with the last run ``ran`` of a job, or else with the command that runs it."""
    text = _("%(problem)s; run `manage.py resourcepool_%(job)s` from cron, a service or Celery beat.")
    if ran:
        text = _("%(problem)s, although its job runs: %(ran)s.")
    return text % {"problem": problem, "ran": ran, "job": job}


def _ran(job: JobStatus | None, within: float) -> str:
    """Return when the job last ran, and its result, as text; "" if not within the last ``within`` seconds."""
    if job is not None and job.holder:
        return _("running now")
    ends = [] if job is None else [ago for ago in (job.done, job.failed) if ago is not None]
    if job is None or not ends or min(ends) > within:
        return ""
    return _("last run %(ago)s ago: %(result)s") % {"ago": duration(min(ends)), "result": localized(job.result)}


def _without_old_checks(jobs: Mapping[str, JobStatus], checked: Container[str]) -> Iterator[JobStatus]:
    """Leave out checks of pools that are no longer checked: nothing could clear their alarms."""
    for job in jobs.values():
        if not job.name.startswith(CHECK) or job.name.removeprefix(CHECK) in checked:
            yield job


def _of_jobs(jobs: Iterable[JobStatus]) -> Iterator[Alarm]:
    for job in jobs:
        if job.failed is not None and job.result.startswith(BROKEN):
            text = _("the checker or its target seems broken: %s")
            pool = job.name.removeprefix(CHECK)
            yield Alarm(AlarmKind.CHECKER_BROKEN, pool, text % localized(_why_failed(job)))
        elif job.failed is not None:
            text = _("The job “%(name)s” failed %(ago)s ago: %(result)s")
            name = job.name
            numbers = {"name": _(name), "ago": duration(job.failed), "result": localized(job.result)}
            yield Alarm(AlarmKind.JOB_FAILED, "", text % numbers)


def _why_failed(job: JobStatus) -> str:
    """Return the result of a failed job without the name of its error."""
    if isinstance(job.result, Sentence):
        return str(job.result.parameters["why"])
    return job.result.removeprefix(BROKEN)


def _of_leaks(label: str, count: int) -> Alarm:
    text = _(
        "leases reported as leaked within the last hour: %(count)d; their events show where they were acquired. Revoke"
        " them, or acknowledge them with `manage.py resourcepool_operate acknowledge %(pool)s --all --reason ..`."
    )
    return Alarm(AlarmKind.LEAKED, label, text % {"count": count, "pool": label})


@dataclass(frozen=True, slots=True)
class Snooze:
    """``by``: the name of the operator; ``left``: seconds until it ends."""

    by: str
    left: float


def snooze(alarm: str, by: str, seconds: float = HOUR) -> None:
    """Snooze the alarm with this id for ``seconds``, an hour at most; 0 ends its snooze."""
    columns = {"pool": SNOOZED, "row": storable(alarm, MAX_ROW), "actor": storable(by, MAX_ACTOR)}
    seconds = min(seconds, HOUR)
    Event.objects.create(at=DbNow(), what=EventKind.SNOOZED, seconds=seconds, **columns)
    alarm_snoozed.send_robust(sender=Event, alarm=alarm, by=by, seconds=seconds)


def snoozes() -> dict[str, Snooze]:
    """Return {id of an alarm: its snooze}."""
    events = Event.objects.using(router.db_for_write(Event)).filter(pool=SNOOZED, what=EventKind.SNOOZED)
    last = {event.row: event for event in fetch_all(events.since(HOUR).with_age().order_by("pk"))}
    found = {row: Snooze(event.actor, (event.seconds or 0.0) - event.age) for row, event in last.items()}
    return {row: snooze for row, snooze in found.items() if snooze.left > 0}


def key_of(alarm: str) -> str:
    return storable(alarm, MAX_ROW)

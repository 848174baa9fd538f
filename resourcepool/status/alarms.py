"""Alarms in words: computed from the state of the pools and the jobs, never stored."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from resourcepool import options
from resourcepool.conf import setting
from resourcepool.events import Sentence, localized
from resourcepool.exceptions import BadOption, CheckerBroken, DatabaseUnavailable
from resourcepool.health_checks.check_settings import check_intervals
from resourcepool.history.leaks import open_leaks
from resourcepool.jobs import CHECK, SWEEP
from resourcepool.resources.registry import resource_model
from resourcepool.resources.state import State
from resourcepool.status.alarm import Alarm, AlarmKind
from resourcepool.status.channels import channel_alarms, channels
from resourcepool.status.jobs import JobStatus, jobs
from resourcepool.status.locks.summary import lock_alarms, summary
from resourcepool.status.pools import PoolStatus, pools
from resourcepool.status.queues.alarms import queue_alarms
from resourcepool.status.queues.queue_groups import queue_groups
from resourcepool.status.snapshots import duration
from resourcepool.status.waiters import explain_longest_wait
from resourcepool.status.work.dispensers import dispenser_alarms, dispensers
from resourcepool.status.work.streams import stream_alarms, streams
from resourcepool.status.work.timers import timer_alarms, topics

__all__ = ["Alarm", "AlarmKind", "Thresholds", "alarms", "alarms_of", "evaluate"]

BROKEN = f"{CheckerBroken.__name__}: "  # begins the result of a check that blames its checker


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The thresholds of alarms, in seconds; RESOURCEPOOL["ALARMS"]."""

    oldest_wait: float
    oldest_task: float
    late_timer: float
    unread: float
    sweep: float

    @classmethod
    def from_settings(cls) -> "Thresholds":
        """Return the limits of the settings; raises BadOption."""
        chosen, names = setting("ALARMS"), tuple(cls.__dataclass_fields__)
        if unknown := chosen.keys() - set(names):
            raise BadOption(
                "RESOURCEPOOL['ALARMS']", sorted(unknown, key=str), because=f"only {', '.join(names)}"
            )
        return cls(*(options.seconds(f"RESOURCEPOOL['ALARMS'][{name!r}]", chosen[name]) for name in names))


# The systems besides pools: how each is read, and the alarms of the result.
SYSTEMS: tuple[tuple[Callable[[], Any], Callable[[Any, Thresholds], Iterable[Alarm]]], ...] = (
    (queue_groups, lambda found, limits: queue_alarms(found)),
    (streams, lambda found, limits: stream_alarms(found, limits.oldest_task)),
    (dispensers, lambda found, limits: dispenser_alarms(found, limits.oldest_task)),
    (topics, lambda found, limits: timer_alarms(found, limits.late_timer)),
    (summary, lambda found, limits: lock_alarms(found, limits.oldest_wait)),
    (channels, lambda found, limits: channel_alarms(found, limits.unread)),
)


def alarms() -> list[Alarm]:
    """Return the present alarms, the worst first."""
    found = pools()
    leaked = open_leaks([pool.label for pool in found])
    return alarms_of(found, jobs(), leaked, *(read() for read, _of in SYSTEMS))


def alarms_of(
    pools: Sequence[PoolStatus], jobs: Mapping[str, JobStatus], leaked: Mapping[str, int], *others: Any
) -> list[Alarm]:
    """Return the alarms of these, judged by the settings; for the arguments see ``evaluate``."""
    limits = Thresholds.from_settings()
    explanations = {pool.label: _why(pool) for pool in pools if _waits(pool, limits)}
    return evaluate(pools, jobs, leaked, limits, check_intervals(), *others, explanations=explanations)


def evaluate(
    pools: Sequence[PoolStatus],
    jobs: Mapping[str, JobStatus],
    leaked: Mapping[str, int],
    limits: Thresholds,
    checked_every: Mapping[str, float],
    *others: Any,
    explanations: Mapping[str, str] = MappingProxyType({}),
) -> list[Alarm]:
    """Return the alarms, the worst first.

    Args:
        leaked: {label of a pool: how many of its leases are open leaks}, see ``open_leaks``.
        checked_every: {label of a checked pool: the interval of its check, in seconds}.
        others: the readings of ``SYSTEMS``, in their order.
        explanations: {label of a pool in which a waiter has waited too long: why that waiter is not served}.
    """
    found = [
        *_of_sweep(jobs.get(SWEEP), limits),
        *_of_jobs(_still_done(jobs, checked_every)),
        *(_of_leaks(label, count) for label, count in leaked.items()),
        *chain.from_iterable(of(one, limits) for (_read, of), one in zip(SYSTEMS, others, strict=False)),
    ]
    for pool in pools:
        found += _of_pool(pool, limits, explanations.get(pool.label, ""))
        found += _of_checks(pool, checked_every.get(pool.label), jobs.get(f"{CHECK}{pool.label}"))
    order = list(AlarmKind)
    return sorted(found, key=lambda alarm: (order.index(alarm.kind), alarm.pool))


def _waits(pool: PoolStatus, limits: Thresholds) -> bool:
    """Whether a waiter has waited too long in a pool with resources in service."""
    return not pool.error and bool(pool.working) and pool.oldest_wait > limits.oldest_wait


def _why(pool: PoolStatus) -> str:
    """Return why the longest waiter is not served; "": it cannot be read."""
    try:
        return explain_longest_wait(resource_model(pool.label))
    except DatabaseUnavailable:
        return ""


def _of_pool(pool: PoolStatus, limits: Thresholds, explanation: str) -> Iterator[Alarm]:
    if pool.error:
        yield Alarm(AlarmKind.UNREADABLE, pool.label, _("cannot be read: %s") % localized(pool.error))
    elif pool.waiters and not pool.working:
        text = ngettext(
            "nothing is in service: %(count)d waits, and nothing can come free.",
            "nothing is in service: %(count)d wait, and nothing can come free.",
            pool.waiters,
        )
        yield Alarm(AlarmKind.NOTHING_IN_SERVICE, pool.label, text % {"count": pool.waiters})
    elif _waits(pool, limits):
        if pool.is_exhausted:
            kind = AlarmKind.EXHAUSTED
            text = ngettext(
                "all %(leased)d are leased; %(count)d waits, for %(wait)s.",
                "all %(leased)d are leased; %(count)d wait, the first for %(wait)s.",
                pool.waiters,
            )
        else:
            kind = AlarmKind.STARVED
            text = _("somebody has waited for %(wait)s, though %(free)d are free (%(count)d in line).")
        free, leased = pool.counts[State.FREE], pool.counts[State.LEASED]
        numbers = {"free": free, "leased": leased, "count": pool.waiters, "wait": duration(pool.oldest_wait)}
        yield Alarm(kind, pool.label, f"{text % numbers} {explanation}".rstrip())
    if pool.expired:
        text = ngettext(
            "%(count)d lease ran out without being released: its holder died, or was cut off.",
            "%(count)d leases ran out without being released: their holders died, or were cut off.",
            pool.expired,
        )
        yield Alarm(AlarmKind.EXPIRED, pool.label, text % {"count": pool.expired})


def _of_checks(pool: PoolStatus, every: float | None, job: JobStatus | None) -> Iterator[Alarm]:
    # Held resources cannot be checked: only free ones count.
    if every is None or pool.error or not pool.counts[State.FREE]:
        return
    ran = _ran(job, 3 * every)
    if pool.oldest_check is None:
        text = _("was never checked, though the check runs: %s") % ran
        if not ran:
            text = _("was never checked; run `manage.py resourcepool_check`.")
        yield Alarm(AlarmKind.CHECK_STALE, pool.label, text)
    elif pool.passed_over is not None and pool.passed_over > 3 * every:
        text = _("free ones were not checked for %(time)s, though the check runs: %(ran)s")
        text %= {"time": duration(pool.passed_over), "ran": ran}
        if not ran:
            text = _(
                "free ones were not checked for %s: nothing has run `manage.py resourcepool_check` (cron, or Celery"
                " beat)."
            ) % duration(pool.passed_over)
        yield Alarm(AlarmKind.CHECK_STALE, pool.label, text)


def _ran(job: JobStatus | None, within: float) -> str:
    """Return when the job ran last and its result, in words; "" if it did not run within so many seconds."""
    if job is not None and job.holder:
        return _("it is running now")
    ends = [] if job is None else [ago for ago in (job.done, job.failed) if ago is not None]
    if job is None or not ends or min(ends) > within:
        return ""
    return _("last %(ago)s ago: %(result)s") % {"ago": duration(min(ends)), "result": localized(job.result)}


def _still_done(jobs: Mapping[str, JobStatus], checked: Container[str]) -> Iterator[JobStatus]:
    """Leave out checks of pools that are no longer checked: nothing could clear their alarms."""
    for job in jobs.values():
        if not job.name.startswith(CHECK) or job.name.removeprefix(CHECK) in checked:
            yield job


def _of_sweep(sweep: JobStatus | None, limits: Thresholds) -> Iterator[Alarm]:
    ran = _ran(sweep, limits.sweep)
    if sweep is None or sweep.done is None:
        text = _("The sweep has never come to its end, though it runs: %s") % ran
        if not ran:
            text = _("The sweep has never run; run `manage.py resourcepool_sweep`.")
        yield Alarm(AlarmKind.SWEEP_STALE, "", text)
    elif sweep.done > limits.sweep:
        text = _("The sweep has not come to its end for %(time)s, though it runs: %(ran)s")
        text %= {"time": duration(sweep.done), "ran": ran}
        if not ran:
            text = _(
                "The sweep has not run for %s: nothing has run `manage.py resourcepool_sweep` (cron, a service, or"
                " Celery beat)."
            ) % duration(sweep.done)
        yield Alarm(AlarmKind.SWEEP_STALE, "", text)


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
    """Return the result of a failed job without the kind of error."""
    if isinstance(job.result, Sentence):
        return str(job.result.parameters["why"])
    return job.result.removeprefix(BROKEN)


def _of_leaks(label: str, count: int) -> Alarm:
    text = ngettext(
        "%(count)d lease was reported as leaked within the last hour; the events say where it was acquired. Free it, or"
        " acknowledge the leak.",
        "%(count)d leases were reported as leaked within the last hour; the events say where they were acquired. Free"
        " them, or acknowledge the leaks.",
        count,
    )
    return Alarm(AlarmKind.LEAKED, label, text % {"count": count})

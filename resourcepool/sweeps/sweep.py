"""The sweep and the other periodic jobs. Leases are correct without them."""

import datetime
import json
import logging
from collections.abc import Callable
from typing import Any

from django.db import IntegrityError, connections, router, transaction
from django.db.models import Count, Exists, OuterRef, QuerySet
from django.utils import translation

from resourcepool.db.dialect import MicrosUntil, read_clock
from resourcepool.db.retry import retrying
from resourcepool.elections.election import Term
from resourcepool.elections.models import election_models
from resourcepool.events import joined, sentence_for
from resourcepool.exceptions import ResourcePoolError
from resourcepool.health_checks.check import CheckOptions, CheckResult, Tally, check
from resourcepool.health_checks.checker import check_settings_of
from resourcepool.history.models import Event, Sample
from resourcepool.history.recorder import recorder
from resourcepool.history.writer import durations, grant_key
from resourcepool.jobs import CHECK, PRUNE, STATISTICS, SWEEP, Job, run
from resourcepool.leases import verbs
from resourcepool.resources.models import AbstractResource
from resourcepool.resources.queryset import ResourceQuerySet, end_leases
from resourcepool.resources.registry import resource_model, resource_models
from resourcepool.resources.state import State
from resourcepool.signals import EventKind, RowEvent, alarm_cleared, alarm_raised, emit, is_recorded
from resourcepool.status.alarms import Alarm, AlarmKind, alarms
from resourcepool.status.resources.pools import PoolStatus, pools
from resourcepool.sweeps.pruning import (
    prune_channels,
    prune_finished,
    prune_history,
    remove_gone_servers,
    remove_unused_names,
)
from resourcepool.text import printable

logger = logging.getLogger("resourcepool.alarms")

SINGULAR = {"leases_expired": "lease_expired", "alarms": "alarm", "samples": "sample"}
MAX_ROWS = 1_000  # rows, or events, of one pool in one sweep
LOOK_BACK = 900.0  # seconds
# A release straight to a waiter also raises the fence by one.
END_EVENTS = (EventKind.EXPIRED, EventKind.RELEASED, EventKind.HANDED_OVER, EventKind.REVOKED)

MINUTE = datetime.timedelta(minutes=1)
LEASE_LOSSES = (EventKind.LOST, EventKind.EXPIRED)


def sweep() -> str | None:
    """Return due resources to service, and clear and report expired leases, in every pool.

    Returns:
        The result in one line; None if another process is running it.
    """
    return run(SWEEP, _sweep)


def prune() -> str | None:
    """Remove old history, tasks, timers, lock names, messages and crashed queue servers; returns as ``sweep``."""
    return run(PRUNE, lambda term: sentence_for("removed", count=_prune(term)))


def refresh_statistics() -> str | None:
    """Record the state of the pools; returns as ``sweep``."""
    return run(STATISTICS, lambda term: _counted(take_samples(), "samples"))


def _prune(term: Term) -> int:
    removed = 0
    for remove in (prune_history, prune_finished, prune_channels, remove_unused_names, remove_gone_servers):
        term.ensure_held()
        removed += remove()
    return removed


def _counted(count: int, code: str) -> str:
    return sentence_for(SINGULAR.get(code, code) if count == 1 else code, count=count)


def _sweep(term: Term) -> str:
    counts: dict[str, int] = {"returned": 0, "leases_expired": 0, "overtaken": 0}
    broken: list[str] = []
    for model in [*resource_models(), *election_models()]:
        term.ensure_held()
        try:
            if issubclass(model, AbstractResource):
                counts["returned"] += ResourceQuerySet(model=model, using=model.pool.using).return_due()
            counts["leases_expired"] += clear_expired(model)
            counts["overtaken"] += report_overtaken(model)
        except ResourcePoolError as error:  # go on with the other pools
            broken.append(sentence_for("about", name=model._meta.label, why=str(error)))
    counts["alarms"] = report_alarms(term)
    return joined([joined([_counted(count, code) for code, count in counts.items()], "and"), *broken])


def clear_expired(model: Any) -> int:
    """Clear the holder of rows whose lease expired without a release, and report each; returns the number of rows.

    The rows were free before. The fence goes up as with a release, so a late holder notices.
    """
    using = router.db_for_write(model)
    connection = connections[using]
    expired = verbs.rows_of(connection, model).expired().annotate(left=MicrosUntil("busy_before"))
    if issubclass(model, AbstractResource):
        expired = expired.filter(in_service__in=(True, False))  # all of them: the index begins with this column
    rows = retrying(connection, lambda: list(expired.values_list("pk", "fence", "holder", "left")[:MAX_ROWS]))
    if not rows:
        return 0
    ended = {grant_key(model, pk, fence): -left / 1_000_000 for pk, fence, _holder, left in rows}
    history = router.db_for_write(Event)
    lasted = retrying(connections[history], lambda: durations(ended, {}, history)) if is_recorded(model) else {}
    # Locked rows, such as those of holders inside ``guard``, are left for the next sweep. An expired lease is never
    # renewed: under the same fence it is still expired.
    cleared = end_leases(verbs.rows_of(connection, model), rows, skip_locked=True)
    for pk, fence, holder, left in cleared:
        reason = sentence_for("found_late", seconds=round(-left / 1_000_000))
        seconds = lasted.get(grant_key(model, pk, fence))
        emit(RowEvent(EventKind.EXPIRED, model, using, pk, fence, holder, reason, seconds=seconds))
    return len(cleared)


def report_overtaken(model: Any) -> int:
    """Report expired leases whose row was granted again before a sweep saw it; returns the number of leases.

    A release raises the fence, so there was none between two grants with consecutive fences. A grant inside a
    transaction of the caller has a fence far ahead; such cases are not reported. The reports are written before this
    returns, so the next sweep does not repeat them.

    Raises:
        DatabaseUnavailable: the history could not be read or written.
    """
    recorder.flush()
    using = router.db_for_write(Event)
    events = Event.objects.using(using).filter(pool=model._meta.label_lower)
    same_row = events.filter(row=OuterRef("row"))
    successor = same_row.acquisitions().filter(fence=OuterRef("fence") + 1)
    end = same_row.filter(fence=OuterRef("fence"), what__in=END_EVENTS)
    acquired = events.filter(what=EventKind.ACQUIRED).since(LOOK_BACK)
    expired = acquired.filter(Exists(successor), ~Exists(end)).order_by("pk")
    leases = retrying(
        connections[using], lambda: list(expired.values_list("row", "fence", "holder")[:MAX_ROWS])
    )
    for row, fence, holder in leases:
        emit(RowEvent(EventKind.EXPIRED, model, using, row, fence, holder, sentence_for("acquired_since")))
    recorder.flush()
    return len(leases)


def report_alarms(term: Term) -> int:
    """Report alarms raised or cleared since the last run of the job; returns the number of current alarms."""
    connection = connections[term.using]
    row = verbs.rows_of(connection, Job).filter(pk=term.pk)
    known = _read(retrying(connection, row.values_list("memory", flat=True).first) or "")
    with translation.override("en"):  # like all logs; ``known`` has English texts, too
        current = [alarm for alarm in alarms() if alarm.kind is not AlarmKind.SWEEP_STALE]
        now = {(alarm.kind.value, alarm.pool): alarm for alarm in current}
        raised = [now[key] for key in now.keys() - known.keys()]
        cleared = [Alarm(AlarmKind(key[0]), key[1], known[key]) for key in known.keys() - now.keys()]
        for alarm in raised:
            logger.warning("%s", printable(alarm))  # names in it are user input
        for alarm in cleared:
            logger.info("cleared: %s", printable(alarm))
    for alarm in raised:
        alarm_raised.send_robust(sender=Alarm, alarm=alarm)
    for alarm in cleared:
        alarm_cleared.send_robust(sender=Alarm, alarm=alarm)
    memory = json.dumps([[*key, alarm.text] for key, alarm in sorted(now.items())])
    retrying(connection, lambda: row.filter(fence=term.fence).update(memory=memory))
    return len(now)


def _read(memory: str) -> dict[tuple[str, str], str]:
    known: list[Any] = json.loads(memory) if memory else []
    return {(kind, pool): text for kind, pool, text in known if kind in list(AlarmKind)}


def take_samples() -> int:
    """Write a sample of each pool for the last full minute, if there is none yet; returns the number of samples."""
    using = router.db_for_write(Sample)
    connection = connections[using]
    now = retrying(connection, lambda: read_clock(connection))
    minute = now.replace(second=0, microsecond=0) - MINUTE
    existing = Sample.objects.using(using).filter(minute=minute)
    done = set(retrying(connection, lambda: list(existing.values_list("pool", flat=True))))
    readable = {pool.label.lower(): pool for pool in pools() if not pool.error}
    labels = [label for label in readable if label not in done]
    counts = retrying(connection, lambda: _count_events(using, labels, minute))
    samples = [_sample(readable[label], minute, *counts.get(label, (0, 0))) for label in labels]
    try:
        retrying(connection, lambda: _write(using, samples))
    except IntegrityError:
        return 0  # another process was faster
    return len(samples)


def _write(using: str, samples: list[Sample]) -> None:
    with transaction.atomic(using=using):
        Sample.objects.using(using).bulk_create(samples)


def _count_events(using: str, labels: list[str], minute: datetime.datetime) -> dict[str, tuple[int, int]]:
    """Return {pool: (leases acquired, leases lost or expired)} in that minute."""
    events = Event.objects.using(using).order_by()
    within = events.filter(pool__in=labels, at__gte=minute, at__lt=minute + MINUTE)
    same_lease = events.filter(pool=OuterRef("pool"), row=OuterRef("row"), fence=OuterRef("fence"))
    # A lease with both events counts once, at the first.
    earlier_loss = same_lease.filter(what__in=LEASE_LOSSES, pk__lt=OuterRef("pk"))
    acquired = _by_pool(within.acquisitions())
    ended = _by_pool(within.filter(~Exists(earlier_loss), what__in=LEASE_LOSSES))
    return {pool: (acquired.get(pool, 0), ended.get(pool, 0)) for pool in acquired.keys() | ended.keys()}


def _by_pool(events: QuerySet[Event]) -> dict[str, int]:
    return dict(events.values_list("pool").annotate(Count("pk")))


def _sample(pool: PoolStatus, minute: datetime.datetime, acquired: int, lost: int) -> Sample:
    free, leased = pool.counts[State.FREE], pool.counts[State.LEASED]
    return Sample(
        pool=pool.label.lower(),
        minute=minute,
        free=free,
        leased=leased,
        away=pool.total - free - leased,
        waiters=pool.waiters,
        oldest_wait=pool.oldest_wait,
        acquired=acquired,
        lost=lost,
    )


def check_pool(
    model: Any, options: CheckOptions, on_result: Callable[[CheckResult], object] = lambda _: None
) -> str | None:
    """Check every free resource of ``model``; see ``check`` for the arguments.

    Returns:
        The result in one line; None if another process is running it.

    Raises:
        CheckerBroken: too many checks failed together; the job failed, and an alarm reports it.
        BadOption: the settings of the check are missing or invalid; no job was started.
    """
    check_settings_of(model)

    def work(term: Term) -> str:
        tally = Tally(on_result)
        check(model, options=options, on_result=tally, checkpoint=term.ensure_held)
        in_use = ResourceQuerySet(model=model, using=model.pool.using).held().filter(in_service=True).count()
        return joined([str(tally), sentence_for("used", count=in_use)]) if in_use else str(tally)

    return run(f"{CHECK}{model._meta.label}", work)


def check_health(label: str) -> str | None:
    """Check the resources of this pool that were not checked recently; started by Celery beat."""
    model = resource_model(label)
    return check_pool(model, CheckOptions(skip_checked_within=check_settings_of(model).every / 2))

"""Records the state of every pool once a minute, for the charts."""

import datetime

from django.db import IntegrityError, connections, router, transaction
from django.db.models import Count, Exists, OuterRef, QuerySet

from resourcepool.db.dialect import read_clock
from resourcepool.db.retry import retrying
from resourcepool.history.models import Event, Sample
from resourcepool.resources.state import State
from resourcepool.signals import EventKind
from resourcepool.status.pools import PoolStatus, pools

MINUTE = datetime.timedelta(minutes=1)
LEASE_LOSSES = (EventKind.LOST, EventKind.EXPIRED)


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

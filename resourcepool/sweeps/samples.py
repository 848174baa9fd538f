"""Writes down once a minute how the pools stand and what has happened: what the charts are drawn from."""

import datetime

from django.db import IntegrityError, connections, router, transaction
from django.db.models import Count, Q

from resourcepool.dialect import read_clock
from resourcepool.history.models import Event, Sample
from resourcepool.leases.retry import retrying
from resourcepool.resources.state import State
from resourcepool.signals import What
from resourcepool.stats.pools import PoolStatus, pools

MINUTE = datetime.timedelta(minutes=1)


def take_samples() -> int:
    """Write a sample of each pool for the last full minute; returns how many. A minute has one sample at most."""
    using = router.db_for_write(Sample)
    connection = connections[using]
    now = retrying(connection, lambda: read_clock(connection))
    minute = now.replace(second=0, microsecond=0) - MINUTE
    happened = retrying(connection, lambda: _happened(using, minute))
    there = Sample.objects.using(using).filter(minute=minute)
    known = set(retrying(connection, lambda: list(there.values_list("pool", flat=True))))
    samples = [
        _sample(pool, minute, *happened.get(pool.label.lower(), (0, 0)))
        for pool in pools()
        if not pool.trouble and pool.label.lower() not in known
    ]
    try:
        retrying(connection, lambda: _write(using, samples))
    except IntegrityError:
        return 0  # somebody else just has
    return len(samples)


def _write(using: str, samples: list[Sample]) -> None:
    with transaction.atomic(using=using):
        Sample.objects.using(using).bulk_create(samples)


def _happened(using: str, minute: datetime.datetime) -> dict[str, tuple[int, int]]:
    """Return {pool: (leases acquired, leases lost or expired)} in that minute."""
    events = Event.objects.using(using).filter(at__gte=minute, at__lt=minute + MINUTE).order_by()
    counts = events.values("pool").annotate(
        acquired=Count("pk", filter=Q(what=What.ACQUIRED)),
        lost=Count("pk", filter=Q(what__in=(What.LOST, What.EXPIRED))),
    )
    return {found["pool"]: (found["acquired"], found["lost"]) for found in counts}


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

"""Removes what is old from the history, of tasks, of timers and of channels, a little at a time."""

from collections.abc import Collection
from functools import partial
from typing import Any

from django.db import connections, router
from django.db.models import Max, Q

from resourcepool import options
from resourcepool.conf import setting
from resourcepool.database.retry import retrying
from resourcepool.dialect import DbLater
from resourcepool.history.models import Event, Sample
from resourcepool.leases.lease import Lease
from resourcepool.leases.short_transactions import briefly
from resourcepool.locks.channels.models import Broadcast, BroadcastMessage, Subscription
from resourcepool.queues.models import Move
from resourcepool.taskqueue.dispenser.models import DispenserTask
from resourcepool.taskqueue.models import Task
from resourcepool.taskqueue.timers.models import Timer

BATCH = 1_000  # rows removed in one statement: short locks, and nobody waits
UNDER_WAY = 600.0  # seconds in which a rebuild that was allowed still finds what had finished
GONE = 60.0  # seconds after which a subscriber without a name is forgotten
YEAR = 366 * options.DAY

# What is removed once it has been finished for as long as its owner keeps it: the owner's column, the states in which
# no operator has to look at it any more, and for how many seconds longer it stays.
FINISHED: dict[Any, tuple[str, Collection[str], float]] = {
    Task: ("stream", (Task.State.DONE, Task.State.SKIPPED, Task.State.DISCARDED), 0.0),
    Timer: ("topic", (Timer.State.DONE, Timer.State.CANCELLED, Timer.State.DISCARDED), 0.0),
    DispenserTask: ("dispenser", (DispenserTask.State.DONE, DispenserTask.State.DISCARDED), UNDER_WAY),
}


def history_kept() -> float:
    """Return RESOURCEPOOL["HISTORY_KEPT"] in seconds; raises BadOption."""
    return options.seconds("RESOURCEPOOL['HISTORY_KEPT']", setting("HISTORY_KEPT"), least=60, most=10 * YEAR)


def history_rows() -> int:
    """Return RESOURCEPOOL["HISTORY_ROWS"]; raises BadOption."""
    return options.whole("RESOURCEPOOL['HISTORY_ROWS']", setting("HISTORY_ROWS"), least=1_000, most=10**10)


def prune_history(lease: Lease | None = None) -> int:
    """Remove events, samples and moves of queues that are too old, and the oldest of too many; returns how many.

    Args:
        lease: of the job that does it; it stops when that is lost.
    """
    old = DbLater(-history_kept())
    removed = _remove(Sample, lease, minute__lt=old)
    for model in (Event, Move):
        removed += _remove(model, lease, at__lt=old)
        removed += _remove(model, lease, pk__lte=_newest(model) - history_rows())
    return removed


def prune_finished(lease: Lease | None = None) -> int:
    """Remove tasks and timers that finished longer ago than they are kept, but for failed ones; returns how many."""
    return sum(_remove_finished(model, lease, *how) for model, how in FINISHED.items())


def prune_channels(lease: Lease | None = None) -> int:
    """Remove messages that are too old, the oldest of too many, and subscribers that died; returns how many."""
    removed = _remove(Subscription, lease, is_durable=False, busy_before__lt=DbLater(-GONE))
    using = router.db_for_write(Broadcast)
    rows = Broadcast.objects.using(using).values_list("pk", "last", "kept", "kept_count")
    for name, last, kept, count in retrying(connections[using], lambda: list(rows)):
        of_channel = {"channel_id": name}
        removed += _remove(BroadcastMessage, lease, **of_channel, published_at__lt=DbLater(-kept))
        removed += _remove(BroadcastMessage, lease, **of_channel, number__lte=last - count)
    return removed


def _remove_finished(
    model: Any, lease: Lease | None, owner: str, states: Collection[str], longer: float
) -> int:
    owners = model._meta.get_field(owner).related_model
    kept = owners.objects.using(router.db_for_write(owners)).values_list("pk", "done_kept")
    return sum(
        _remove(model, lease, Q(state__in=states), **{owner: name}, finished_at__lt=DbLater(-seconds - longer))
        for name, seconds in retrying(connections[kept.db], lambda: list(kept))
    )


def _newest(model: Any) -> int:
    rows = model.objects.using(router.db_for_write(model))
    found = retrying(connections[rows.db], lambda: rows.aggregate(newest=Max("pk")))
    return found["newest"] or 0


def _remove(model: Any, lease: Lease | None, still: Q = Q(), **old: Any) -> int:  # noqa: B008 (never changed)
    """Remove the rows that are ``old``; ``still``: what has to be true also when they are locked."""
    using, removed = router.db_for_write(model), 0
    rows, connection = model.objects.using(using), connections[using]
    while True:
        if lease is not None:
            lease.ensure_held()
        # By primary key, because a range on the other index would lock what is just being added.
        pks = retrying(connection, lambda: list(rows.filter(still, **old).values_list("pk", flat=True)[:BATCH]))
        # Locked rows are removed next time; if only those are left, this run is done.
        found = briefly(using, partial(_delete_unlocked, rows.filter(still), pks)) if pks else 0
        if not found:
            return removed
        removed += found


def _delete_unlocked(rows: Any, pks: list[Any]) -> int:
    skips = connections[rows.db].features.has_select_for_update_skip_locked
    free = rows.filter(pk__in=pks).select_for_update(skip_locked=skips)
    found = list(free.values_list("pk", flat=True))
    return int(rows.filter(pk__in=found)._raw_delete(rows.db)) if found else 0

"""Removes old history, tasks, timers, messages, names and crashed queue servers, in small batches."""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from django.db import connections, router
from django.db.models import Count, Exists, Max, OuterRef, Q

from resourcepool import options
from resourcepool.conf import setting
from resourcepool.db.dialect import DbLater, MicrosUntil
from resourcepool.db.receipts import KEPT, Receipt
from resourcepool.db.retry import retrying
from resourcepool.db.rows import for_update
from resourcepool.db.transactions import run_short_transaction
from resourcepool.exceptions import RowLocked
from resourcepool.history.models import Event, Sample
from resourcepool.jobs import PRUNE
from resourcepool.leases import verbs
from resourcepool.leases.models import LeaseQuerySet
from resourcepool.locks.base import UNUSED_AFTER
from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow, Subscription
from resourcepool.locks.models import Barrier, ConditionWaiter, Lock as LockRow, RWLockPermit, SemaphorePermit
from resourcepool.queues import reassignment
from resourcepool.queues.models import Move, QueueGroup, Server
from resourcepool.queues.queries import using_of_queues
from resourcepool.taskqueue.dispenser.models import DispenserTask
from resourcepool.taskqueue.models import Task
from resourcepool.taskqueue.timers.models import Timer
from resourcepool.waiting.models import Ticket, line_name

BATCH = 1_000  # rows removed in one short transaction
REBUILD_GRACE = 600.0  # seconds for which a running rebuild needs finished tasks
GONE_AFTER = 60.0  # seconds after which an expired subscriber without a name is removed
YEAR = 366 * options.DAY

# {model: (column of the owner, which has the retention; states that need no operator; extra seconds of retention)}
FINISHED: dict[Any, tuple[str, Collection[str], float]] = {
    Task: ("stream", (Task.State.DONE, Task.State.SKIPPED, Task.State.DISCARDED), 0.0),
    Timer: ("topic", (Timer.State.DONE, Timer.State.CANCELLED, Timer.State.DISCARDED), 0.0),
    DispenserTask: ("dispenser", (DispenserTask.State.DONE, DispenserTask.State.DISCARDED), REBUILD_GRACE),
}

NAMED_MODELS: tuple[Any, ...] = (LockRow, ConditionWaiter, Barrier)
PERMIT_MODELS: tuple[Any, ...] = (RWLockPermit, SemaphorePermit)

Find = Callable[[LeaseQuerySet, str], Sequence[Any]]
Remove = Callable[[LeaseQuerySet, Sequence[Any]], int]

SERVER_GONE_AFTER = 3_600.0  # seconds after which a queue server is not expected to return from an outage


def history_kept() -> float:
    """Return RESOURCEPOOL["HISTORY_KEPT"] in seconds; raises BadOption."""
    return options.seconds("RESOURCEPOOL['HISTORY_KEPT']", setting("HISTORY_KEPT"), least=60, most=10 * YEAR)


def history_rows() -> int:
    """Return RESOURCEPOOL["HISTORY_ROWS"]; raises BadOption."""
    return options.whole("RESOURCEPOOL['HISTORY_ROWS']", setting("HISTORY_ROWS"), least=1_000, most=10**10)


def prune_history() -> int:
    """Remove events, samples and queue moves beyond the limits of age and number; returns the number removed."""
    old = DbLater(-history_kept())
    removed = _remove(Sample, minute__lt=old)
    for model in (Event, Move):
        removed += _remove(model, at__lt=old) + _remove(model, pk__lte=_newest(model) - history_rows())
    return removed


def prune_finished() -> int:
    """Remove old finished tasks and timers, except failed ones, and receipts; returns the number removed."""
    finished = sum(_remove_finished(model, *how) for model, how in FINISHED.items())
    return finished + _remove(Receipt, at__lt=DbLater(-KEPT))


def prune_channels() -> int:
    """Remove messages beyond the limits of age and number, and expired subscriptions; returns the number removed."""
    removed = _remove(Subscription, is_durable=False, busy_before__lt=DbLater(-GONE_AFTER))
    using = router.db_for_write(ChannelRow)
    rows = ChannelRow.objects.using(using).values_list("pk", "last", "kept", "kept_count")
    for name, last, kept, count in retrying(connections[using], lambda: list(rows)):
        of_channel = {"channel_id": name}
        removed += _remove(MessageRow, **of_channel, published_at__lt=DbLater(-kept))
        removed += _remove(MessageRow, **of_channel, number__lte=last - count)
    return removed


def _remove_finished(model: Any, owner: str, states: Collection[str], longer: float) -> int:
    owners = model._meta.get_field(owner).related_model
    kept = owners.objects.using(router.db_for_write(owners)).values_list("pk", "done_kept")
    return sum(
        _remove(model, Q(state__in=states), **{owner: name}, finished_at__lt=DbLater(-seconds - longer))
        for name, seconds in retrying(connections[kept.db], lambda: list(kept))
    )


def _newest(model: Any) -> int:
    rows = model.objects.using(router.db_for_write(model))
    result = retrying(connections[rows.db], lambda: rows.aggregate(newest=Max("pk")))
    return result["newest"] or 0


def _remove(model: Any, still: Q = Q(), **old: Any) -> int:  # noqa: B008 (never changed)
    """Remove the rows that match ``old`` and ``still``; ``still`` is checked again after locking."""
    using, removed = router.db_for_write(model), 0
    rows, connection = model.objects.using(using), connections[using]
    while True:
        # By primary key: a range on another index would lock rows that are being inserted.
        pks = retrying(connection, lambda: list(rows.filter(still, **old).values_list("pk", flat=True)[:BATCH]))
        # Locked rows are left for the next run.
        count = run_short_transaction(using, partial(_delete_unlocked, rows.filter(still), pks)) if pks else 0
        if not count:
            return removed
        removed += count


def _delete_unlocked(rows: Any, pks: list[Any]) -> int:
    unlocked = for_update(rows.filter(pk__in=pks), skip_locked=True)
    return _delete(rows, list(unlocked.values_list("pk", flat=True)))


def remove_unused_names() -> int:
    """Remove the rows of locks, permits and conditions that are unused for a day and have no waiters.

    Programs generate names (``Lock(f"order-{pk}")``), so their number grows without limit. A name that is used again
    gets new rows, whose fences begin at the database's clock: above the old ones.

    The permits of a name are removed all together, because their rows count as its number of permits; not at all if
    one is out of service, because then ``resize`` has set their number. Returns the number of removed rows.
    """
    removed = 0
    for model in NAMED_MODELS:
        removed += _sweep(_all(model), _unused_rows, _remove_rows)
    for model in PERMIT_MODELS:
        removed += _sweep(_all(model).filter(name=""), _unused_rows, _remove_rows)  # no permits
        removed += _sweep(_all(model), _unused_names, _remove_names)
    return removed


def _all(model: Any) -> LeaseQuerySet:
    return verbs.rows_of(connections[router.db_for_write(model)], model)


def _sweep(rows: LeaseQuerySet, find: Find, remove: Remove) -> int:
    after, removed = "", 0
    while True:
        keys = retrying(connections[rows.db], partial(find, rows, after))
        if not keys:
            return removed
        # MariaDB may scan a small table to delete rows by key, and meet locked ones: they are left for the next run.
        with contextlib.suppress(RowLocked):
            removed += run_short_transaction(rows.db, partial(remove, rows, keys))
        after = keys[-1]


def _unused_rows(rows: LeaseQuerySet, after: str) -> Sequence[Any]:
    unused = rows.filter(pk__gt=after, busy_before__lt=DbLater(-UNUSED_AFTER)).order_by("pk")
    return list(unused.values_list("pk", flat=True)[:BATCH])


def _remove_rows(rows: LeaseQuerySet, pks: Sequence[Any]) -> int:
    unused = rows.filter(pk__in=pks, busy_before__lt=DbLater(-UNUSED_AFTER))
    free = list(for_update(unused, skip_locked=True).values_list("pk", flat=True))
    awaited = _awaited(rows, {rows.model.name_of(pk) for pk in free})
    return _delete(rows, [pk for pk in free if rows.model.name_of(pk) not in awaited])


def _unused_names(rows: LeaseQuerySet, after: str) -> Sequence[Any]:
    names = rows.filter(name__gt=after).values_list("name").order_by("name")
    out = Count("pk", filter=Q(in_service=False))
    counted = names.annotate(count=Count("pk"), last=Max("busy_before"), out=out)
    unused, total = list[Any](), 0
    for name, count, *_ in counted.filter(last__lt=DbLater(-UNUSED_AFTER), out=0)[:BATCH]:
        total += count
        if unused and total > BATCH:
            break
        unused.append(name)
    return unused


def _remove_names(rows: LeaseQuerySet, names: Sequence[Any]) -> int:
    of_names = rows.filter(name__in=names)
    columns = ("pk", "name", "in_service", MicrosUntil("busy_before"))
    locked = list(for_update(of_names, skip_locked=True).values_list(*columns))
    # Includes rows that are locked elsewhere.
    counts = dict(of_names.values_list("name").annotate(Count("pk")).order_by("name"))
    unused: dict[str, list[Any]] = defaultdict(list)
    for pk, name, in_service, micros in locked:
        if in_service and micros < -UNUSED_AFTER * 1_000_000:
            unused[name].append(pk)
    complete = {name: pks for name, pks in unused.items() if len(pks) == counts[name]}
    awaited = _awaited(rows, complete)
    return _delete(rows, [pk for name, pks in complete.items() if name not in awaited for pk in pks])


def _awaited(rows: LeaseQuerySet, names: Collection[str]) -> set[str]:
    """Return the ``names`` that have waiters. Later waiters find no rows, and create new ones."""
    lines = {line_name(rows.model, name): name for name in names}
    live = Ticket.objects.using(rows.db).held().filter(pool__in=list(lines))
    return {lines[pool] for pool in live.values_list("pool", flat=True)}


def _delete(rows: Any, pks: Sequence[Any]) -> int:
    return int(rows.filter(pk__in=pks)._raw_delete(rows.db)) if pks else 0


def remove_gone_servers() -> int:
    """Remove queue servers without a heartbeat for an hour; their queues become unassigned.

    Skips queue groups with another queue server alive since: that one takes over by itself. A server whose queue is
    locked by an open transaction is left for the next run. Returns the number of removed queue servers.
    """
    using = using_of_queues()
    servers = Server.objects.using(using).filter(queue_group=OuterRef("pk"))
    recent = servers.filter(busy_before__gte=DbLater(-SERVER_GONE_AFTER))
    left = QueueGroup.objects.using(using).filter(Exists(servers), ~Exists(recent)).values_list("pk", flat=True)
    removed = 0
    for queue_group in retrying(connections[using], lambda: list(left)):
        rows = Server.objects.using(using).filter(queue_group=queue_group)
        before = _count(rows)
        with contextlib.suppress(RowLocked, QueueGroup.DoesNotExist):
            reassignment.reassign(using, queue_group, PRUNE, if_due=True)
        removed += max(0, before - _count(rows))
    return removed


def _count(rows: Any) -> int:
    return int(retrying(connections[rows.db], rows.count))

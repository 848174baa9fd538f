"""Removes the rows of locks and their relatives whose names have not been used for long, a little at a time.

Names are made up by programs (``Lock(f"order-{pk}")``), so there is no end to them. A name that is used again gets new
rows, whose fences begin at the database's clock: above those that there were.
"""

import contextlib
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from django.db import connections, router
from django.db.models import Count, Max, Q

from resourcepool.database.retry import retrying
from resourcepool.dialect import DbLater, MicrosUntil
from resourcepool.exceptions import RowLocked
from resourcepool.leases import verbs
from resourcepool.leases.lease import Lease
from resourcepool.leases.models import LeaseQuerySet
from resourcepool.leases.short_transactions import briefly
from resourcepool.locks.base import UNUSED
from resourcepool.locks.models import Mutex, Notification, RWLockPermit, SemaphorePermit
from resourcepool.waiting.models import Ticket, line_name

BATCH = 1_000  # names read, and rows removed in one transaction: short locks, and nobody waits

ROWS: tuple[Any, ...] = (Mutex, Notification)
PERMITS: tuple[Any, ...] = (RWLockPermit, SemaphorePermit)

Find = Callable[[LeaseQuerySet, str], Sequence[Any]]
Remove = Callable[[LeaseQuerySet, Sequence[Any]], int]


def remove_unused_names(lease: Lease | None = None) -> int:
    """Remove rows that nobody has held for a day, and nobody waits for; returns how many.

    Of permits all of a name are removed, or none: what is left would be taken for all there are. None, if one is out of
    service: ``resize`` has decided how many there are.

    Args:
        lease: of the job that does it; it stops when that is lost.
    """
    removed = 0
    for model in ROWS:
        removed += _sweep(lease, _all(model), _unused_rows, _remove_rows)
    for model in PERMITS:
        removed += _sweep(lease, _all(model).filter(name=""), _unused_rows, _remove_rows)  # no permits
        removed += _sweep(lease, _all(model), _unused_names, _remove_names)
    return removed


def _all(model: Any) -> LeaseQuerySet:
    return verbs.rows_of(connections[router.db_for_write(model)], model)


def _sweep(lease: Lease | None, rows: LeaseQuerySet, find: Find, remove: Remove) -> int:
    after, removed = "", 0
    while True:
        if lease is not None:
            lease.ensure_held()
        found = retrying(connections[rows.db], partial(find, rows, after))
        if not found:
            return removed
        # MariaDB may read all of a small table to delete some rows by their keys, and wait for locked ones: next time.
        with contextlib.suppress(RowLocked):
            removed += briefly(rows.db, partial(remove, rows, found))
        after = found[-1]


def _unused_rows(rows: LeaseQuerySet, after: str) -> Sequence[Any]:
    unused = rows.filter(pk__gt=after, busy_before__lt=DbLater(-UNUSED)).order_by("pk")
    return list(unused.values_list("pk", flat=True)[:BATCH])


def _remove_rows(rows: LeaseQuerySet, pks: Sequence[Any]) -> int:
    unused = _unlocked(rows.filter(pk__in=pks, busy_before__lt=DbLater(-UNUSED)))
    free = list(unused.values_list("pk", flat=True))
    awaited = _awaited(rows, {rows.model.name_of(pk) for pk in free})
    return _delete(rows, [pk for pk in free if rows.model.name_of(pk) not in awaited])


def _unused_names(rows: LeaseQuerySet, after: str) -> Sequence[Any]:
    names = rows.filter(name__gt=after).values_list("name").order_by("name")
    out = Count("pk", filter=Q(in_service=False))
    each = names.annotate(there=Count("pk"), last=Max("busy_before"), out=out)
    found, total = list[Any](), 0
    for name, there, *_ in each.filter(last__lt=DbLater(-UNUSED), out=0)[:BATCH]:
        total += there
        if found and total > BATCH:
            break
        found.append(name)
    return found


def _remove_names(rows: LeaseQuerySet, names: Sequence[Any]) -> int:
    these = rows.filter(name__in=names)
    locked = list(_unlocked(these).values_list("pk", "name", "in_service", MicrosUntil("busy_before")))
    there = dict(these.values_list("name").annotate(Count("pk")).order_by("name"))  # also locked ones
    mine: dict[str, list[Any]] = {}
    for pk, name, in_service, micros in locked:
        if in_service and micros < -UNUSED * 1_000_000:
            mine.setdefault(name, []).append(pk)
    whole = {name: pks for name, pks in mine.items() if len(pks) == there[name]}
    awaited = _awaited(rows, whole)
    return _delete(rows, [pk for name, pks in whole.items() if name not in awaited for pk in pks])


def _unlocked(rows: LeaseQuerySet) -> LeaseQuerySet:
    """Lock these rows, but for those that others have locked: somebody is about to use them."""
    skips = connections[rows.db].features.has_select_for_update_skip_locked
    return rows.select_for_update(skip_locked=skips).order_by("pk")


def _awaited(rows: LeaseQuerySet, names: Collection[str]) -> set[str]:
    """Return those of the ``names`` that somebody waits for. Who comes later finds no rows, and makes new ones."""
    lines = {line_name(rows.model, name): name for name in names}
    live = Ticket.objects.using(rows.db).held().filter(pool__in=list(lines))
    return {lines[pool] for pool in live.values_list("pool", flat=True)}


def _delete(rows: LeaseQuerySet, pks: Sequence[Any]) -> int:
    return int(rows.filter(pk__in=pks)._raw_delete(rows.db)) if pks else 0

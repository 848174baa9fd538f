"""Operator actions: revoke locks by name or by holder, resize semaphores, remove barriers.

``rows`` belong to one model; any row of a name selects all rows of that name. ``reason`` and ``actor`` go into the
history. All functions raise BadOption, with nothing changed, if one of them is not one line of text, and
DatabaseUnavailable, possibly after some changes.
"""

from collections.abc import Callable
from typing import Any

from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db.retry import retrying
from resourcepool.db.transactions import row_locked
from resourcepool.events import sentence_for
from resourcepool.exceptions import RowLocked
from resourcepool.leases import verbs
from resourcepool.locks.bulk_release import INCARNATION, Held, checked_texts, release_all, revoke_rows
from resourcepool.locks.conditions.barrier import Barrier
from resourcepool.locks.models import Barrier as BarrierRow, SemaphorePermit
from resourcepool.locks.registry import parse_holder
from resourcepool.locks.semaphore import Semaphore
from resourcepool.signals import EventKind, RowEvent, emit
from resourcepool.waiting.models import Ticket

MAX_NAMES_IN_ERROR = 3  # names in an error


def revoke(rows: Any, reason: str, *, actor: str = "") -> int:
    """Revoke all leases of these names; return how many names were held.

    The fence grows, and the first waiter gets the row. The holder notices within a third of its ttl: ``lost`` is set,
    ``on_lost`` runs. Not promised: that it stops working; see ``Hold.guard``.
    """
    reason, actor = checked_texts(reason, actor)
    revoked = revoke_rows(_connection(rows), rows.model, _held(rows), reason, actor)
    return len({rows.model.name_of(pk) for pk in revoked})


def resize_names(rows: Any, permits: int, reason: str, *, actor: str = "") -> int:
    """Set the number of permits of these semaphores; return how many were resized. See ``Semaphore.resize``.

    Raises:
        RowLocked: permits of some are locked by ``guard``; it names them. All others have been resized.
    """
    reason, actor = checked_texts(reason, actor)
    using, names = _connection(rows).alias, _names(rows)
    locked: list[str] = []
    for name in sorted(names):
        semaphore = Semaphore(name)
        before = semaphore.value
        try:
            semaphore.resize(permits)
        except RowLocked:
            locked.append(name)
            continue
        described = sentence_for("resized", before=before, after=permits, why=reason)
        key = SemaphorePermit.key_of(name, 0)
        fence = _fence(using, key)
        event = RowEvent(EventKind.RESIZED, SemaphorePermit, using, key, fence, reason=described, actor=actor)
        emit(event)
    if locked:
        listed = ", ".join(locked[:MAX_NAMES_IN_ERROR]) + ", .." * (len(locked) > MAX_NAMES_IN_ERROR)
        raise row_locked(using, listed, count=len(locked), done=len(names) - len(locked))
    return len(names)


def revoke_holders(rows: Any, reason: str, *, actor: str = "") -> int:
    """Revoke everything that the holders' processes hold; return how many of these names they held.

    Requests that hold some permits and wait for more are skipped: another holder blocks them.
    """
    held = _held(rows, lambda held: held.exclude(holder__in=_collecting(rows)))
    processes = {pk: parse_holder(holder)[0] for pk, _fence, holder in held}
    known = {pk: process for pk, process in processes.items() if INCARNATION.fullmatch(process)}
    for process in sorted(set(known.values())):
        release_all(process, reason=reason, actor=actor)
    return len(set(map(rows.model.name_of, known)))


def remove_barriers(rows: Any, reason: str, *, actor: str = "") -> int:
    """Remove these barriers, so that their waiters continue; return how many existed."""
    reason, actor = checked_texts(reason, actor)
    using, count = _connection(rows).alias, 0
    for name in sorted(_names(rows)):
        if Barrier(name).remove():
            count += 1
            emit(RowEvent(EventKind.DELETED, BarrierRow, using, name, reason=reason, actor=actor))
    return count


def _connection(rows: Any) -> BaseDatabaseWrapper:
    return connections[router.db_for_write(rows.model)]


def _names(rows: Any) -> set[str]:
    connection = _connection(rows)
    return retrying(connection, lambda: set(rows.using(connection.alias).values_list("name", flat=True)))


def _held(rows: Any, narrow: Callable[[Any], Any] = lambda held: held) -> list[Held]:
    """Return the held rows of these names that ``narrow`` selects, sorted by key."""
    connection = _connection(rows)
    held = narrow(verbs.rows_of(connection, rows.model).filter(name__in=_names(rows)).held()).order_by("pk")
    return retrying(connection, lambda: list(held.values_list("pk", "fence", "holder")))


def _collecting(rows: Any) -> Any:
    """Return the holders of waiting tickets: they may hold some of the permits they asked for."""
    tickets = Ticket.objects.using(_connection(rows).alias)
    return tickets.for_rows_of(rows.model).waiting().values("holder")


def _fence(using: str, key: str) -> int:
    """Return the fence of a permit; the events of a row are sorted by it."""
    fence = verbs.rows_of(connections[using], SemaphorePermit).filter(pk=key).values_list("fence", flat=True)
    return retrying(connections[using], fence.first) or 0

"""What operators can do: free names, free everything of their holders, resize semaphores, remove barriers.

``rows`` are of one kind; of a name with several rows, any of them stands for all. ``reason`` and ``actor`` go into the
history. All raise BadOption, with nothing changed, if one of the two is not one line of text; and DatabaseUnavailable,
when some may have been changed.
"""

from collections.abc import Callable
from typing import Any

from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.database.retry import retrying
from resourcepool.database.short_statements import rows_locked
from resourcepool.events import sentence_for
from resourcepool.exceptions import RowLocked
from resourcepool.leases import verbs
from resourcepool.locks.bulk_release import INCARNATION, Held, checked_texts, release_all, revoke_rows
from resourcepool.locks.conditions.barrier import PREFIX, Barrier
from resourcepool.locks.models import Notification, SemaphorePermit
from resourcepool.locks.registry import parse_holder
from resourcepool.locks.semaphore import Semaphore
from resourcepool.signals import EventKind, RowEvent, emit
from resourcepool.waiting.models import Ticket

MAX_NAMES_IN_ERROR = 3  # names in an error


def revoke(rows: Any, reason: str, *, actor: str = "") -> int:
    """Take every lease of these names away; return how many names were held.

    The fence goes up, and the first in line gets the row. The holder is told within a third of its ttl: ``lost`` is
    set, ``on_lost`` runs. Not promised: that it stops working; see ``Hold.guard``.
    """
    reason, actor = checked_texts(reason, actor)
    freed = revoke_rows(_writes(rows), rows.model, _held(rows), reason, actor)
    return len({rows.model.name_of(pk) for pk in freed})


def resize_names(rows: Any, permits: int, reason: str, *, actor: str = "") -> int:
    """Set the number of permits of these semaphores; return how many semaphores. See ``Semaphore.resize``.

    Raises:
        RowLocked: holders keep permits locked (``guard``); it names some of them. All others have been resized.
    """
    reason, actor = checked_texts(reason, actor)
    using, names = _writes(rows).alias, _names(rows)
    locked: list[str] = []
    for name in sorted(names):
        semaphore = Semaphore(name)
        before = semaphore.value
        try:
            semaphore.resize(permits)
        except RowLocked:
            locked.append(name)
            continue
        why = sentence_for("resized", before=before, after=permits, why=reason)
        key = SemaphorePermit.key_of(name, 0)
        emit(
            RowEvent(
                EventKind.RESIZED, SemaphorePermit, using, key, _fence(using, key), reason=why, actor=actor
            )
        )
    if locked:
        told = ", ".join(locked[:MAX_NAMES_IN_ERROR]) + ", .." * (len(locked) > MAX_NAMES_IN_ERROR)
        raise rows_locked(using, len(locked), len(names) - len(locked), told)
    return len(names)


def revoke_holders(rows: Any, reason: str, *, actor: str = "") -> int:
    """Take everything away from the processes that hold these names; return how many of the names they held.

    Spared are those that wait for several permits and have some of them so far: they are not what hangs.
    """
    held = _held(rows, lambda held: held.exclude(holder__in=_collecting(rows)))
    process_of = {pk: parse_holder(holder)[0] for pk, _fence, holder in held}
    theirs = {pk: process for pk, process in process_of.items() if INCARNATION.fullmatch(process)}
    for process in sorted(set(theirs.values())):
        release_all(process, reason=reason, actor=actor)
    return len(set(map(rows.model.name_of, theirs)))


def remove_barriers(rows: Any, reason: str, *, actor: str = "") -> int:
    """Remove these barriers, so that their waiters go on; return how many there were."""
    reason, actor = checked_texts(reason, actor)
    using, count = _writes(rows).alias, 0
    for name in sorted(_names(rows.filter(name__begins=PREFIX))):
        if Barrier(name.removeprefix(PREFIX)).remove():
            count += 1
            emit(RowEvent(EventKind.DELETED, Notification, using, name, reason=reason, actor=actor))
    return count


def _writes(rows: Any) -> BaseDatabaseWrapper:
    return connections[router.db_for_write(rows.model)]


def _names(rows: Any) -> set[str]:
    connection = _writes(rows)
    return retrying(connection, lambda: set(rows.using(connection.alias).values_list("name", flat=True)))


def _held(rows: Any, chosen: Callable[[Any], Any] = lambda held: held) -> list[Held]:
    """Return all held rows of these names that are ``chosen``, sorted by key."""
    connection = _writes(rows)
    held = chosen(verbs.rows_of(connection, rows.model).filter(name__in=_names(rows)).held()).order_by("pk")
    return retrying(connection, lambda: list(held.values_list("pk", "fence", "holder")))


def _collecting(rows: Any) -> Any:
    """Return the holders of waiting tickets, which may have some of the permits they want."""
    tickets = Ticket.objects.using(_writes(rows).alias)
    return tickets.for_rows_of(rows.model).waiting().values("holder")


def _fence(using: str, key: str) -> int:
    """Return the fence of a permit, by which the events of a row are sorted."""
    fence = verbs.rows_of(connections[using], SemaphorePermit).filter(pk=key).values_list("fence", flat=True)
    return retrying(connections[using], fence.first) or 0

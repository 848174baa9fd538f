"""What operators do to names: free them and all that their holders hold, resize semaphores, remove barriers."""

from collections.abc import Callable
from typing import Any

from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.database.retry import retrying
from resourcepool.database.short_statements import rows_locked
from resourcepool.events import say
from resourcepool.exceptions import RowLocked
from resourcepool.leases import verbs
from resourcepool.locks.conditions.barrier import PREFIX, Barrier
from resourcepool.locks.models import Notification, SemaphorePermit
from resourcepool.locks.owners import owner_in
from resourcepool.locks.releasing import AN_INCARNATION, release_all
from resourcepool.locks.semaphore import Semaphore
from resourcepool.locks.taking_away import Held, said, take_away
from resourcepool.signals import Fact, What, tell
from resourcepool.waiting.models import Ticket

MOST_TOLD = 3  # names in an error


def free(rows: Any, reason: str, *, actor: str = "") -> int:
    """Take every lease of the names of ``rows`` away; return how many names were held.

    Its fence goes up, and the row goes to the first in line. The holder is told within one beat of its keeper (a third
    of its ttl): ``lost`` is set, ``on_lost`` runs. Not promised: that it stops what it does; see ``Hold.guard``.

    Args:
        rows: of one kind; of a name with several rows, any of them stands for all.

    Raises:
        BadOption: ``reason`` or ``actor`` is no line of text.
        DatabaseUnavailable: some may have been taken away.
    """
    reason, actor = said(reason, actor)
    freed = take_away(_writes(rows), rows.model, _held(rows), reason, actor)
    return len({rows.model.name_of(pk) for pk in freed})


def resize_names(rows: Any, permits: int, reason: str, *, actor: str = "") -> int:
    """Let each semaphore of ``rows`` have so many permits, and write down who said so; return how many there are.

    Args:
        rows: permits; any of a name stands for all. A name without a row is not made.
        permits: 0 to 10,000. See ``Semaphore.resize`` for those that are held.

    Raises:
        BadOption: ``reason`` or ``actor`` is no line of text; nothing has been changed.
        RowLocked: holders keep permits locked (``guard``); it names some of these, all others have been resized.
        DatabaseUnavailable: it is not known which have been.
    """
    reason, actor = said(reason, actor)
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
        why = say("resized", before=before, after=permits, why=reason)
        key = SemaphorePermit.key_of(name, 0)
        tell(Fact(What.RESIZED, SemaphorePermit, using, key, _fence(using, key), reason=why, actor=actor))
    if locked:
        told = ", ".join(locked[:MOST_TOLD]) + ", .." * (len(locked) > MOST_TOLD)
        raise rows_locked(using, len(locked), len(names) - len(locked), told)
    return len(names)


def free_holders(rows: Any, reason: str, *, actor: str = "") -> int:
    """Take everything away from the processes that hold a name of ``rows``, of other names and kinds, too.

    Not from one that waits for several permits, and has got some of them so far: it is not what hangs.

    Returns:
        How many names of ``rows`` were held by these.

    Raises:
        BadOption: ``reason`` or ``actor`` is no line of text; nothing has been taken away.
        DatabaseUnavailable: some may have been taken away.
    """
    held = _held(rows, lambda held: held.exclude(holder__in=_collecting(rows)))
    process_of = {pk: owner_in(holder)[0] for pk, _fence, holder in held}
    theirs = {pk: process for pk, process in process_of.items() if AN_INCARNATION.fullmatch(process)}
    for process in sorted(set(theirs.values())):
        release_all(process, reason=reason, actor=actor)
    return len(set(map(rows.model.name_of, theirs)))


def remove_barriers(rows: Any, reason: str, *, actor: str = "") -> int:
    """Remove the barriers of ``rows``, let all go on who wait before them, and write down who said so.

    Returns:
        How many stood.

    Raises:
        BadOption: ``reason`` or ``actor`` is no line of text; nothing has been removed.
        DatabaseUnavailable: some may have been removed.
    """
    reason, actor = said(reason, actor)
    using, count = _writes(rows).alias, 0
    for name in sorted(_names(rows.filter(name__begins=PREFIX))):
        if Barrier(name.removeprefix(PREFIX)).remove():
            count += 1
            tell(Fact(What.DELETED, Notification, using, name, reason=reason, actor=actor))
    return count


def _writes(rows: Any) -> BaseDatabaseWrapper:
    return connections[router.db_for_write(rows.model)]


def _names(rows: Any) -> set[str]:
    connection = _writes(rows)
    return retrying(connection, lambda: set(rows.using(connection.alias).values_list("name", flat=True)))


def _held(rows: Any, chosen: Callable[[Any], Any] = lambda held: held) -> list[Held]:
    """Return the rows of the names of ``rows`` that are held and ``chosen``, in the order of their keys."""
    connection = _writes(rows)
    held = chosen(verbs.rows_of(connection, rows.model).filter(name__in=_names(rows)).held()).order_by("pk")
    return retrying(connection, lambda: list(held.values_list("pk", "fence", "holder")))


def _collecting(rows: Any) -> Any:
    """Return who waits for several permits, and may have some of them."""
    tickets = Ticket.objects.using(_writes(rows).alias)
    return tickets.for_rows_of(rows.model).waiting().values("holder")


def _fence(using: str, key: str) -> int:
    """Return the fence of a permit: events of a row are sorted by it."""
    fence = verbs.rows_of(connections[using], SemaphorePermit).filter(pk=key).values_list("fence", flat=True)
    return retrying(connections[using], fence.first) or 0

"""What operators do to names: free them, free all that their holders hold, change how many permits there are."""

from typing import Any

from django.db import connections, router

from resourcepool.database.retry import retrying
from resourcepool.database.short_statements import rows_locked
from resourcepool.events import say
from resourcepool.exceptions import RowLocked
from resourcepool.leases import verbs
from resourcepool.locks.models import AbstractNamed, SemaphorePermit
from resourcepool.locks.owners import owner_in
from resourcepool.locks.releasing import AN_INCARNATION, release_all
from resourcepool.locks.semaphore import Semaphore
from resourcepool.locks.taking_away import said, take_away
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
    model: type[AbstractNamed] = rows.model
    connection = connections[router.db_for_write(model)]
    names = retrying(connection, lambda: set(rows.using(connection.alias).values_list("name", flat=True)))
    of_names = verbs.rows_of(connection, model).filter(name__in=names).held().order_by("pk")
    held = retrying(connection, lambda: list(of_names.values_list("pk", "fence", "holder")))
    return len({model.name_of(pk) for pk in take_away(connection, model, held, reason, actor)})


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
    using = router.db_for_write(SemaphorePermit)
    names = retrying(connections[using], lambda: set(rows.using(using).values_list("name", flat=True)))
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
        row = verbs.rows_of(connections[using], SemaphorePermit).filter(pk=key).values_list("fence", flat=True)
        fence = retrying(connections[using], row.first) or 0  # by which events of a row are sorted
        tell(Fact(What.RESIZED, SemaphorePermit, using, key, fence, reason=why, actor=actor))
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
    model: type[AbstractNamed] = rows.model
    connection = connections[router.db_for_write(model)]
    names = retrying(connection, lambda: set(rows.using(connection.alias).values_list("name", flat=True)))
    of_names = verbs.rows_of(connection, model).filter(name__in=names).held()
    collecting = Ticket.objects.using(connection.alias).for_rows_of(model).waiting().values("holder")
    of_holders = of_names.exclude(holder__in=collecting).values_list("name", "holder")
    held = retrying(connection, lambda: list(of_holders))
    theirs = [
        (name, process) for name, holder in held if AN_INCARNATION.fullmatch(process := owner_in(holder)[0])
    ]
    for process in sorted({process for _name, process in theirs}):
        release_all(process, reason=reason, actor=actor)
    return len({name for name, _process in theirs})

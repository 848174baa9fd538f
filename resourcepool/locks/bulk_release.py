"""``release_all`` releases everything that a process holds; and what operators do to locks, semaphores and barriers.

``rows`` of an operation belong to one model; any row of a name selects all rows of that name. ``reason`` and ``actor``
go into the history. Operations raise DatabaseUnavailable, possibly after some changes.
"""

import contextlib
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.db.retry import retrying
from resourcepool.db.row_locks import row_locked
from resourcepool.db.rows import batched
from resourcepool.db.sync_async import in_thread
from resourcepool.events import sentence_for
from resourcepool.exceptions import BadOption, DatabaseUnavailable, LeaseLost, RowLocked
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from resourcepool.leases.terms import MAX_LENGTH, default_holder
from resourcepool.locks import registry
from resourcepool.locks.barrier import Barrier
from resourcepool.locks.lockable import LockLease
from resourcepool.locks.models import (
    AbstractNamed,
    AbstractNotification,
    Barrier as BarrierRow,
    ConditionWaiter,
    Lock as LockRow,
    RWLockPermit,
    SemaphorePermit,
)
from resourcepool.locks.permits import PermitLease
from resourcepool.locks.registry import parse_holder
from resourcepool.locks.semaphore import Semaphore
from resourcepool.signals import EventKind, RowEvent, emit
from resourcepool.waiting.models import Ticket
from resourcepool.waiting.release import release_many

MODELS: tuple[Any, ...] = (LockRow, SemaphorePermit, RWLockPermit, ConditionWaiter, BarrierRow)
INCARNATION = re.compile(r"[0-9a-f]{8}")
MAX_REASON, MAX_ACTOR = 200, 150  # characters that the history keeps
MAX_NAMES_IN_ERROR = 3

Held = tuple[Any, int, str]  # key, fence, holder


def release_all(holder: str | None = None, *, reason: str = "", actor: str = "") -> int:
    """Release all locks, semaphores and read-write locks that a process holds; return how many rows.

    Waiters get them. An open ``with`` block of this process raises NotHeld at its end. Another process notices the loss
    at its next renewal or check (``held.guard``); its fences are outdated.

    Args:
        holder: a holder of another process as shown in lists, or only the 8 hexadecimal digits in it, which identify
            the process; None: this process.
        reason, actor: for the history, if ``holder`` is given.

    Raises:
        BadOption: ``holder`` does not name a process, or ``reason`` or ``actor`` is not one line of text.
        DatabaseUnavailable: some may not have been released; those of this process will expire.
    """
    for option, text, most in (("reason", reason, MAX_REASON), ("actor", actor, MAX_ACTOR)):
        if text != "":
            options.text(option, text, most=most)
    if holder is None:
        return _release_ours()
    holder = options.text("holder", holder, most=MAX_LENGTH)
    incarnation = parse_holder(holder)[0] if "/" in holder else holder
    if not INCARNATION.fullmatch(incarnation):
        allowed = "a holder as shown in lists, or the 8 hexadecimal digits in it that identify a process"
        raise BadOption("holder", holder, allowed)
    if incarnation != parse_holder(default_holder())[0]:
        return sum(_release_theirs(model, incarnation, reason, actor) for model in MODELS)

    def on_release(lease: LockLease) -> None:
        _emit_revoked(lease.model, lease.using, (lease.pk, lease.fence, lease.holder), reason, actor)

    return _release_ours(on_release)


async def arelease_all(holder: str | None = None, *, reason: str = "", actor: str = "") -> int:
    """``release_all`` for asyncio."""
    return await in_thread(partial(release_all, holder, reason=reason, actor=actor))


def _release_ours(on_release: Callable[[LockLease], object] = id) -> int:
    registry.forget()  # first, so that locks acquired by other threads from now on stay registered
    groups: dict[Any, list[Any]] = defaultdict(list)
    for lease in keeper.unreleased():
        if isinstance(lease, LockLease) and not issubclass(lease.model, AbstractNotification):
            lease._stop_renewing()  # all of them first: if the database is unavailable, they expire
            groups[lease.model, lease.using, lease.model.name_of(lease.pk)].append(lease)
    released, last_error = 0, None
    for group in groups.values():
        for some in batched(group, verbs.BATCH):
            try:
                _give_back(some)
            except DatabaseUnavailable as error:
                last_error = error
            given_back = [lease for lease in some if lease.is_released]
            released += len(given_back)
            for lease in given_back:
                on_release(lease)
    if last_error is not None:
        raise last_error
    return released


def _give_back(leases: Sequence[Any]) -> None:
    if isinstance(leases[0], PermitLease):
        with contextlib.suppress(LeaseLost):  # or just released by another thread
            PermitLease.release_together(leases)
        return
    for lease in leases:  # a lost lease of one thread may be held by another thread now
        with contextlib.suppress(LeaseLost):
            lease.release()


def _release_theirs(model: Any, incarnation: str, reason: str, actor: str) -> int:
    connection = connections[router.db_for_write(model)]
    theirs = verbs.rows_of(connection, model).held().filter(holder__contains=f"/{incarnation}.").order_by("pk")
    candidates = retrying(connection, lambda: list(theirs.values_list("pk", "fence", "holder")))
    held = [row for row in candidates if parse_holder(row[2])[0] == incarnation]
    return len(revoke_rows(connection, model, held, reason, actor))


def revoke_rows(
    connection: BaseDatabaseWrapper, model: type[AbstractNamed], held: Sequence[Held], reason: str, actor: str
) -> list[Any]:
    """Revoke the leases of these rows, sorted by key; return the keys of rows that were still held."""
    revoked = list[Any]()
    for _, of_name in groupby(held, key=lambda row: model.name_of(row[0])):
        for batch in batched(of_name, verbs.BATCH):
            pairs = [(pk, fence) for pk, fence, _ in batch]
            lost = release_many(connection, model, pairs, trusted_until=0.0)
            for pk, fence, holder in batch:
                if pk not in lost:
                    revoked.append(pk)
                    _emit_revoked(model, connection.alias, (pk, fence, holder), reason, actor)
    return revoked


def _emit_revoked(model: Any, using: str, held: Held, reason: str, actor: str) -> None:
    emit(RowEvent(EventKind.REVOKED, model, using, *held, reason, actor))


def revoke(rows: Any, reason: str, *, actor: str = "") -> int:
    """Revoke all leases of these names; return how many names were held.

    The fence grows, and the first waiter gets the row. The holder notices within a third of its ttl: ``lost`` is set,
    ``on_lost`` runs. Not promised: that it stops working; see ``Hold.guard``.
    """
    revoked = revoke_rows(_connection(rows), rows.model, _held(rows), reason, actor)
    return len({rows.model.name_of(pk) for pk in revoked})


def resize_names(rows: Any, permits: int, reason: str, *, actor: str = "") -> int:
    """Set the number of permits of these semaphores; return how many were resized. See ``Semaphore.resize``.

    Raises:
        RowLocked: permits of some are locked by ``guard``; it names them. All others have been resized.
    """
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

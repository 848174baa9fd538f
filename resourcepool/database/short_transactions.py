"""Transactions for operators' changes, which must not wait for a holder's long transaction."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NoReturn, TypeVar

from django.db import DatabaseError, connections, models

from resourcepool import dialect
from resourcepool.database.lock_holders import AnyModel, describe_lockers
from resourcepool.database.retry import retrying
from resourcepool.database.rows import unlocked
from resourcepool.dialect import SHORT_LOCK_WAIT, ErrorKind, short_transaction
from resourcepool.events import sentence_for
from resourcepool.exceptions import RowLocked

Result = TypeVar("Result")


def run_short_transaction(
    using: str,
    work: Callable[[], Result],
    *,
    settle: Callable[[], Result] | None = None,
    rows: tuple[AnyModel, Collection[Any]] | None = None,
    wait: int = SHORT_LOCK_WAIT,
) -> Result:
    """Run ``work`` in one transaction on ``using`` that waits only briefly for locks; return its result.

    Inside a transaction of the caller, errors are the database's own, and the caller decides whether to retry.

    Args:
        settle: see ``retrying``.
        rows: model and primary keys of the changed rows, so that the error can name the sessions that lock them.
        wait: whole seconds that a statement waits for a lock.

    Raises:
        RowLocked: nothing was changed.
        DatabaseUnavailable: the database did not answer; nothing was changed, or it is unknown.
    """
    connection = connections[using]

    def send() -> Result:
        with short_transaction(connection, wait=wait):
            return work()

    def locked() -> NoReturn:
        raise row_locked(using, describe_lockers(using, *rows) if rows else "")

    return retrying(connection, send, settle=settle, busy=None if connection.in_atomic_block else locked)


@contextlib.contextmanager
def fail_if_locked(using: str) -> Iterator[None]:
    """Run the block in one transaction on ``using`` with a short lock timeout, without retries.

    Raises:
        RowLocked: nothing was changed. Inside a transaction of the caller, the database's own error is raised instead.
    """
    connection = connections[using]
    is_outermost = not connection.in_atomic_block
    try:
        with short_transaction(connection, idle=None):
            yield
    except DatabaseError as error:
        if is_outermost and dialect.error_kind(connection, error) is ErrorKind.BUSY:
            raise row_locked(using) from error
        raise


def change_skipping_locked(
    using: str,
    model: type[models.Model],
    chunks: Iterable[Sequence[Any]],
    change: Callable[[Sequence[Any], bool], int],
) -> int:
    """Apply ``change`` to one chunk of primary keys at a time, skipping locked rows.

    It waits for a locked row only once, however many rows are locked.

    Args:
        change: called with primary keys and whether to skip locked rows; returns the number of changed rows, and
            raises RowLocked (see ``run_short_transaction``).

    Returns:
        The number of changed rows.

    Raises:
        RowLocked: some rows were locked; the others were changed.
    """
    done, locked = 0, set[Any]()
    for chunk in chunks:
        if not locked:
            try:
                done += change(chunk, False)
                continue
            except RowLocked:
                pass
        free = unlocked(connections[using], model, chunk)
        rows: Any = models.QuerySet(model=model, using=using).filter(pk__in=chunk).values_list("pk", flat=True)
        locked |= set(retrying(connections[using], rows.all().__iter__)) - free
        if not free:
            continue
        try:
            done += change([pk for pk in chunk if pk in free], True)
        except RowLocked:  # e.g. a row of another table that changes together with one of these
            locked |= free
    if locked:
        raise rows_locked(using, len(locked), done, describe_lockers(using, model, locked))
    return done


def row_locked(using: str, lockers: str = "") -> RowLocked:
    """Return the error for a locked row; ``lockers``: the sessions that lock it."""
    return RowLocked(_with_lockers(lockers, sentence_for("row_locked", alias=repr(using))))


def rows_locked(using: str, locked: int, done: int, lockers: str = "") -> RowLocked:
    """Return the error for ``locked`` rows, of which ``done`` others were changed."""
    if locked == 1 and not done:
        return row_locked(using, lockers)
    error = sentence_for("rows_locked", alias=repr(using), count=locked, count_done=done)
    return RowLocked(_with_lockers(lockers, error), done)


def _with_lockers(lockers: str, error: str) -> str:
    return sentence_for("about", name=error, why=lockers) if lockers else error

"""Short transactions: how long a statement waits for a locked row, and how long the session may idle."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NoReturn, TypeVar

from django.db import DatabaseError, InterfaceError, connections, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db import dialect
from resourcepool.db.dialect import ErrorKind
from resourcepool.db.dialect.connections import close_quietly, execute, of
from resourcepool.db.retry import retrying
from resourcepool.db.row_locks import describe_lockers, row_locked
from resourcepool.exceptions import RowLocked

AnyModel = type[models.Model]


SHORT_LOCK_WAIT = 3  # whole seconds
IDLE = 5  # whole seconds; most of our transactions never pause that long between two statements
LONG_IDLE = 60  # whole seconds, for those that compute in between: an import, a form

Result = TypeVar("Result")


@contextlib.contextmanager
def short_transaction(
    connection: BaseDatabaseWrapper, *, idle: int = IDLE, wait: int = SHORT_LOCK_WAIT
) -> Iterator[None]:
    """Open a transaction in which a statement waits at most ``wait`` seconds for a locked row or table.

    If the process is suspended for ``idle`` seconds, the database server ends the session and releases its locks.

    Inside a transaction of the caller, also one begun by turning autocommit off, and on SQLite, the project's settings
    apply.

    On PostgreSQL it is at READ COMMITTED whatever the project has chosen: under load, all tries could otherwise fail
    because others had changed the rows since its snapshot.
    """
    db_dialect, session = of(connection), None
    is_outermost = not connection.in_atomic_block and connection.get_autocommit()
    try:
        with transaction.atomic(using=connection.alias):
            if is_outermost and db_dialect.short_lock_wait:
                session = connection.connection
                if db_dialect.read_committed and not db_dialect.reads_committed(connection):
                    execute(connection, db_dialect.read_committed)
                execute(connection, db_dialect.short_lock_wait, {"seconds": wait, "idle": idle})
            yield
    finally:
        # After its end, because Django refuses statements in a transaction marked for rollback.
        # A lost session needs no reset; one that cannot be reset is closed.
        if db_dialect.usual_lock_wait and session is not None and session is connection.connection:
            try:
                execute(connection, db_dialect.usual_lock_wait)
            except (DatabaseError, InterfaceError):
                close_quietly(connection)


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
        with short_transaction(connection, idle=LONG_IDLE):
            yield
    except DatabaseError as error:
        if is_outermost and dialect.error_kind(connection, error) is ErrorKind.BUSY:
            raise row_locked(using) from error
        raise


def unlocked(connection: BaseDatabaseWrapper, model: type[models.Model], pks: Sequence[Any]) -> set[Any]:
    """Return the primary keys in ``pks`` whose rows no transaction locks now."""
    if not connection.features.has_select_for_update_skip_locked:
        return set()
    rows: Any = models.QuerySet(model=model, using=connection.alias).filter(pk__in=pks)

    def read() -> set[Any]:
        with short_transaction(connection):
            return set(rows.select_for_update(skip_locked=True).values_list("pk", flat=True).all())

    # If the whole table is locked, do not wait again: the caller may have to renew leases in other tables.
    return retrying(connection, read, busy=set)


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
        raise row_locked(using, describe_lockers(using, model, locked), count=len(locked), done=done)
    return done

"""Short transactions: how long a statement waits for a locked row, and how long the session may idle."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from django.db import DatabaseError, InterfaceError, connections, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db import dialect
from resourcepool.db.dialect import ErrorKind
from resourcepool.db.dialect.connections import close_quietly, execute, of
from resourcepool.db.inspection import Session, inspector
from resourcepool.db.retry import retrying
from resourcepool.events import sentence_for
from resourcepool.exceptions import RowLocked

AnyModel = type[models.Model]

MAX_ROWS = 1_000  # rows per query
MAX_NAMED = 3  # rows that an error names


@dataclass(frozen=True, slots=True)
class Locked:
    """A row that is locked now.

    Attributes:
        pool: "app.Model"; ``id``: its primary key.
        session: the session that locks it; None: unknown, or this database user may not see it.
    """

    pool: str
    id: Any
    session: Session | None

    def __str__(self) -> str:
        session, row = self.session, f"{self.pool} {self.id}"
        if session is None:
            return sentence_for("locked_by_unseen", row=row)
        who = {
            "session": session.number,
            "client": session.client or "the same host",
            "command": session.command,
        }
        if session.idle is None:
            return sentence_for("locked_by_busy", row=row, **who)
        return sentence_for("locked_by", row=row, count=round(session.idle), **who)


def lockers(using: str, model: AnyModel, pks: Collection[Any]) -> list[Locked]:
    """Return the rows, among the first ``MAX_ROWS``, that a session locks now.

    Empty on SQLite, which locks the whole database, and inside a transaction of the caller, which the query could
    disturb.
    """
    connection = connections[using]
    column, quote = model._meta.pk, connection.ops.quote_name
    assert column is not None  # noqa: S101 (for the type checker: every model has one)
    keys = {column.get_db_prep_value(pk, connection): pk for pk in list(pks)[:MAX_ROWS]}
    if not keys or connection.in_atomic_block or not connection.get_autocommit():
        return []
    try:
        table = quote(model._meta.db_table)
        sessions = inspector(connection).lockers(table, quote(str(column.column)), list(keys))
    except (DatabaseError, InterfaceError):  # no permission: the error says less
        return []
    label, pk_of = model._meta.label, {str(key): pk for key, pk in keys.items()}
    return [Locked(label, pk_of[str(key)], session) for key, session in sessions.items() if str(key) in pk_of]


def describe_lockers(using: str, model: AnyModel, pks: Collection[Any]) -> str:
    """Return which sessions lock the first few of these rows; "": none, or unknown."""
    return "; ".join(map(str, lockers(using, model, pks)[:MAX_NAMED]))


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


def row_locked(using: str, lockers: str = "", *, count: int = 1, done: int = 0) -> RowLocked:
    """Return the error for locked rows.

    Args:
        lockers: the sessions that lock them; "": unknown.
        count: the number of locked rows.
        done: the number of other rows that were changed.
    """
    alias = repr(using)
    error = sentence_for("rows_locked", alias=alias, count=count, count_done=done)
    if count == 1 and not done:
        error = sentence_for("row_locked", alias=alias)
    return RowLocked(sentence_for("about", name=error, why=lockers) if lockers else error, done)

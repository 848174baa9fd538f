"""Transactions that are committed once, also when the reply to a COMMIT is lost.

Each leaves its number in a row of its own; sent again, it finds the number there if it was committed. What it changed
does not tell: others may have changed it since.
"""

# ruff: noqa: S608 (quoted names)

import contextlib
import os
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.constants import OnConflict
from django.utils.translation import gettext_lazy as _

from resourcepool import dialect
from resourcepool.database.retry import retrying
from resourcepool.dialect import SHORT_LOCK_WAIT, DbNow, KeyField, short_transaction
from resourcepool.options import DAY

KEPT = DAY  # seconds; a transaction is sent again for a few

Result = TypeVar("Result")


class Receipt(models.Model):
    """The number of the last transaction of one writer, which is one thread of a process at a time."""

    writer = KeyField(_("writer"), max_length=32, primary_key=True, editable=False)
    number = models.BigIntegerField(_("number"), editable=False)
    at = models.DateTimeField(_("at"), default=DbNow, editable=False)

    objects: ClassVar[Any] = models.Manager()

    class Meta:
        verbose_name = _("receipt")
        verbose_name_plural = _("receipts")
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.writer}: {self.number}"


def commit_once(
    connection: BaseDatabaseWrapper, work: Callable[[], Result], *, wait: int = SHORT_LOCK_WAIT, **limits: Any
) -> Result:
    """Return what ``work`` returns. It runs in one transaction that is committed once, however often it is sent.

    Inside a transaction of the caller, ``work`` goes with that.

    Args:
        wait: whole seconds for which a statement waits for a lock.
        limits: see ``short_transaction``.

    Raises:
        DatabaseUnavailable: nothing was changed, or it is not known.
    """
    told: list[Result] = []
    hooks: list[Any] = []
    with _numbered(connection.alias) as (writer, number):

        def send() -> Result:
            is_callers = connection.in_atomic_block or not connection.get_autocommit()
            with short_transaction(connection, wait=wait, **limits):
                # First: this waits for a try whose COMMIT is still on its way.
                if is_callers or _leave(connection, writer, number):
                    told[:] = [work()]
                    hooks[:] = connection.run_on_commit
                else:  # what was to be done after that commit was not, for nobody knew of it
                    connection.run_on_commit += hooks
            return told[0]

        return retrying(connection, send)


def _leave(connection: BaseDatabaseWrapper, writer: str, number: int) -> bool:
    """Leave this number in the writer's row; False: it is there."""
    quote, now = connection.ops.quote_name, dialect.of(connection).indexed_now
    table, at = quote(Receipt._meta.db_table), quote("at")
    update = f"UPDATE {table} SET number = %s, {at} = {now} WHERE writer = %s AND number < %s"
    if dialect.run(connection, update, (number, writer, number), dialect.row_count):
        return True
    insertion = connection.ops.insert_statement(on_conflict=OnConflict.IGNORE)
    end = connection.ops.on_conflict_suffix_sql([], OnConflict.IGNORE, [], [])
    insert = f"{insertion} {table} (writer, number, {at}) VALUES (%s, %s, {now}) {end}"
    return bool(dialect.run(connection, insert, (writer, number), dialect.row_count))


# {database: the writers of this process that nobody uses just now, each with its last number}
_idle: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)


@contextlib.contextmanager
def _numbered(alias: str) -> Iterator[tuple[str, int]]:
    """Have a writer for oneself, with the number of its next transaction."""
    idle = _idle[alias]
    try:
        writer, number = idle.pop()
    except IndexError:
        writer, number = uuid.uuid4().hex, 0
    try:
        yield writer, number + 1
    finally:
        idle.append((writer, number + 1))


# A child has writers of its own: the parent goes on with its numbers.
os.register_at_fork(after_in_child=_idle.clear)

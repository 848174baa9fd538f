"""Transactions that are committed exactly once, even if the reply to a COMMIT is lost.

Each writes its number into its writer's row; sent again, it finds the number there if it was committed. The changed
rows themselves prove nothing, because others may have changed them since.
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

from resourcepool.db import dialect
from resourcepool.db.dialect import DbNow, KeyField
from resourcepool.db.retry import retrying
from resourcepool.db.transactions import IDLE, SHORT_LOCK_WAIT, short_transaction
from resourcepool.options import DAY
from resourcepool.translation import gettext_lazy as _

KEPT = DAY  # seconds; retries take only a few

Result = TypeVar("Result")


class Receipt(models.Model):
    """The number of the last transaction of one writer; one thread uses a writer at a time."""

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
    connection: BaseDatabaseWrapper,
    work: Callable[[], Result],
    *,
    idle: int = IDLE,
    wait: int = SHORT_LOCK_WAIT,
) -> Result:
    """Run ``work`` in one transaction that is committed exactly once, however often it is sent; return its result.

    Inside a transaction of the caller, ``work`` is committed with that.

    Args:
        idle: whole seconds that it may pause between two statements.
        wait: whole seconds that a statement waits for a lock.

    Raises:
        DatabaseUnavailable: nothing was changed, or it is unknown.
    """
    results: list[Result] = []
    hooks: list[Any] = []
    with _numbered(connection.alias) as (writer, number):

        def send() -> Result:
            is_callers = connection.in_atomic_block or not connection.get_autocommit()
            with short_transaction(connection, idle=idle, wait=wait):
                # First, because this waits for an attempt whose COMMIT is still under way.
                if is_callers or _write_number(connection, writer, number):
                    results[:] = [work()]
                    hooks[:] = connection.run_on_commit
                else:  # committed before, but Django did not run the hooks of that attempt
                    connection.run_on_commit += hooks
            return results[0]

        return retrying(connection, send)


def _write_number(connection: BaseDatabaseWrapper, writer: str, number: int) -> bool:
    """Write this number into the writer's row; returns False if it is there already."""
    quote, now = connection.ops.quote_name, dialect.of(connection).indexed_now
    table, at = quote(Receipt._meta.db_table), quote("at")
    update = f"UPDATE {table} SET number = %s, {at} = {now} WHERE writer = %s AND number < %s"
    if dialect.run(connection, update, (number, writer, number), dialect.row_count):
        return True
    insertion = connection.ops.insert_statement(on_conflict=OnConflict.IGNORE)
    end = connection.ops.on_conflict_suffix_sql([], OnConflict.IGNORE, [], [])
    insert = f"{insertion} {table} (writer, number, {at}) VALUES (%s, %s, {now}) {end}"
    return bool(dialect.run(connection, insert, (writer, number), dialect.row_count))


# {database: unused writers of this process, each with its last number}
_idle: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)


@contextlib.contextmanager
def _numbered(alias: str) -> Iterator[tuple[str, int]]:
    idle = _idle[alias]
    try:
        writer, number = idle.pop()
    except IndexError:
        writer, number = uuid.uuid4().hex, 0
    try:
        yield writer, number + 1
    finally:
        idle.append((writer, number + 1))


# A child has its own writers, because the parent continues with its numbers.
os.register_at_fork(after_in_child=_idle.clear)

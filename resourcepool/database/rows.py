"""Rows that are inserted when they are first needed, or locked until the end of the transaction."""

import contextlib
from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, connections, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.database.retry import retrying
from resourcepool.dialect import short_transaction


def ensure_row(model: type[models.Model], using: str, pk: Any, **columns: Any) -> bool:
    """Insert the row with this primary key if it is missing; return whether it was.

    Args:
        columns: values of a new row.
    """
    # An insertion would wait for a transaction that locks the row.
    if model._base_manager.using(using).filter(pk=pk).exists():
        return False
    insert_unless_exists(model(pk=pk, **columns), using)
    return True


def insert_unless_exists(row: models.Model, using: str) -> None:
    """Insert this row, unless its key exists; in a transaction of the caller, in a savepoint."""
    with contextlib.suppress(IntegrityError), transaction.atomic(using=using):
        row.save(force_insert=True, using=using)


def for_update(rows: Any, *, skip_locked: bool = False) -> Any:
    """Return a queryset that locks ``rows`` in the order of their primary keys, so that transactions do not deadlock.

    Args:
        skip_locked: leave out rows that another transaction has locked, if the database can.
    """
    skips = skip_locked and connections[rows.db].features.has_select_for_update_skip_locked
    return rows.select_for_update(skip_locked=skips).order_by("pk")


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

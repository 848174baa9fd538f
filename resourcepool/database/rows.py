"""Rows that are inserted when they are first needed, or locked until the end of the transaction."""

import contextlib
from typing import Any

from django.db import IntegrityError, connections, models, transaction


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

"""Rows that are inserted when they are first needed."""

import contextlib
from typing import Any

from django.db import IntegrityError, models, transaction


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

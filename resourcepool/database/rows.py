"""Rows that are inserted when they are first needed, or in bulk, or locked until the end of the transaction."""

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import IntegrityError, connections, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.constants import OnConflict

from resourcepool import dialect
from resourcepool.database.retry import retrying
from resourcepool.dialect import DbNow, FenceField, short_transaction


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


def insert_many(
    connection: BaseDatabaseWrapper, blank: models.Model, names: Sequence[str], rows: Iterable[Sequence[Any]]
) -> int:
    """Insert rows in this order, except existing keys; return how many were inserted. An error inserts none.

    Written in SQL: ``bulk_create`` needs five times as long to prepare the values, most of which are equal in all rows.

    Args:
        blank: an unsaved row with the values of all other columns.
        names: the columns of ``rows``. The last one may be a time; None means the time of the statement.
    """
    db_dialect, ops, meta = dialect.of(connection), connection.ops, blank._meta
    texts: list[str] = []
    columns: list[Any] = []
    same: list[Any] = []
    for field in meta.concrete_fields:
        value = getattr(blank, field.attname)
        if field.primary_key or field.name in names:
            continue
        columns.append(field)
        if isinstance(field, FenceField):
            texts.append(db_dialect.micros_now)
        elif isinstance(value, DbNow):
            texts.append(db_dialect.indexed_now)
        else:
            texts.append("%s")
            same.append(field.get_db_prep_save(value, connection))
    columns += [meta.get_field(name) for name in names]
    start = f"({', '.join(texts)}, {'%s, ' * (len(names) - 1)}"
    values, params = [], []
    for row in rows:
        is_now = row[-1] is None
        values.append(f"{start}{db_dialect.indexed_now if is_now else '%s'})")
        params += [*same, *(row[:-1] if is_now else row)]
    quoted = ", ".join(ops.quote_name(str(field.column)) for field in columns)
    insertion = ops.insert_statement(on_conflict=OnConflict.IGNORE)
    end = ops.on_conflict_suffix_sql(columns, OnConflict.IGNORE, [], [])
    insertion = f"{db_dialect.before_warnings(connection)}{insertion}"
    sql = f"{insertion} {ops.quote_name(meta.db_table)} ({quoted}) VALUES {', '.join(values)} {end}"
    with transaction.atomic(using=connection.alias, savepoint=False):
        added = dialect.run(connection, sql, params, dialect.row_count)
        db_dialect.raise_on_altered_text(connection)
    return int(added)


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

"""Changes how many permits a semaphore has."""

import contextlib
from functools import partial
from typing import Any, NamedTuple

from django.db import IntegrityError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db import dialect
from resourcepool.db.dialect import DbNow
from resourcepool.db.transactions import run_short_transaction
from resourcepool.leases import verbs
from resourcepool.leases.table import table_of
from resourcepool.locks.models import NUMBER_MARK
from resourcepool.locks.permits import Permits
from resourcepool.waiting.assignment import assign_quietly

MAX_PERMITS = 10_000
TRIES = 3


class _Row(NamedTuple):
    pk: Any
    in_service: bool
    is_held: bool

    @property
    def number(self) -> int:
        return int(self.pk.rpartition(NUMBER_MARK)[2])


def resize(permits: Permits, value: int) -> int:
    """See ``Semaphore.resize``.

    At least one row is kept out of service, so that the sweep keeps the name, and with it the operator's number.
    """
    using = permits.using

    def change() -> int:
        beyond = _resize(permits, using, value)
        # Inside the transaction: with autocommit off, on_commit needs one.
        transaction.on_commit(partial(assign_quietly, using, permits.model, [permits.name]), using=using)
        return beyond

    for _ in range(TRIES):
        with contextlib.suppress(IntegrityError):  # rows added concurrently
            return run_short_transaction(using, change)
    return run_short_transaction(using, change)


def _locked_rows(permits: Permits, connection: BaseDatabaseWrapper) -> list[_Row]:
    """Lock all rows of the name, so that no other resize or sweep sees this one half done."""
    db_dialect, table = dialect.of(connection), table_of(connection, permits.model)
    # Without this hint MariaDB 11 uses the index of the ORDER BY and locks every row it reads there.
    index = db_dialect.by_index.format(index=f"rp_{permits.model._meta.model_name}_free")
    lock = " FOR UPDATE" if connection.features.has_select_for_update else ""
    name = connection.ops.quote_name("name")
    is_held = f"CASE WHEN {table.busy_before} > {db_dialect.now} THEN 1 ELSE 0 END"
    query = f"SELECT {table.pk}, in_service, {is_held} FROM {table.name}{index} WHERE {name} = %s"  # noqa: S608
    rows = dialect.run(connection, f"{query} ORDER BY {table.pk}{lock}", (permits.name,), dialect.all_rows)
    return [_Row(pk, bool(in_service), bool(held)) for pk, in_service, held in rows]


def _resize(permits: Permits, using: str, value: int) -> int:
    rows = verbs.rows_of(connections[using], permits.model).filter(name=permits.name)
    existing = _locked_rows(permits, connections[using])
    # Held rows stay in service before free ones, to hold as few as possible beyond the new value.
    existing.sort(key=lambda row: (not row.is_held, not row.in_service, row.number))
    stay, go = existing[:value], existing[value:]
    rows.filter(pk__in=[row.pk for row in stay if not row.in_service]).update(in_service=True)
    rows.filter(pk__in=[row.pk for row in go if row.in_service]).update(in_service=False)
    missing, taken = value - len(stay), {row.number for row in existing}
    numbers = (number for number in range(MAX_PERMITS + 1) if number not in taken)
    new = [permits._new_row(next(numbers)) for _ in range(missing)]
    if not go:
        new.append(permits._new_row(next(numbers), in_service=False))
    for row in new:
        row.busy_before = DbNow()
    rows.bulk_create(new)
    return sum(row.is_held for row in go)

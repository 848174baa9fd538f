"""Changes many rows, skipping locked ones."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.db import connections

from resourcepool.db.lock_holders import describe_lockers
from resourcepool.db.retry import retrying
from resourcepool.db.transactions import rows_locked
from resourcepool.exceptions import RowLocked
from resourcepool.leases import verbs
from resourcepool.leases.table import Model


def change_skipping_locked(
    using: str,
    model: Model,
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
        free = verbs.unlocked(connections[using], model, chunk)
        locked |= _existing(using, model, chunk) - free
        if not free:
            continue
        try:
            done += change([pk for pk in chunk if pk in free], True)
        except RowLocked:  # e.g. a row of another table that changes together with one of these
            locked |= free
    if locked:
        raise rows_locked(using, len(locked), done, describe_lockers(using, model, locked))
    return done


def _existing(using: str, model: Model, pks: Sequence[Any]) -> set[Any]:
    connection = connections[using]
    rows = verbs.rows_of(connection, model).filter(pk__in=pks)
    return retrying(connection, lambda: set(rows.values_list("pk", flat=True).all()))

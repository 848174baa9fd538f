"""Changes of many rows, some of which may be locked: all others are changed."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.db import connections

from resourcepool.database.retry import retrying
from resourcepool.database.short_statements import rows_locked
from resourcepool.exceptions import RowLocked
from resourcepool.leases import verbs
from resourcepool.leases.lock_holders import describe_lockers
from resourcepool.leases.table import Model


def change_skipping_locked(
    using: str,
    model: Model,
    chunks: Iterable[Sequence[Any]],
    change: Callable[[Sequence[Any], bool], int],
) -> int:
    """Apply ``change`` to a chunk of primary keys at a time, skipping locked rows.

    Locked rows are waited for only once, however many there are.

    Args:
        change: takes primary keys, and whether to skip locked rows; returns how many rows it changed, and raises
            RowLocked (see ``run_short_transaction``).

    Returns:
        The number of changed rows.

    Raises:
        RowLocked: some were locked; the others are done.
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
        locked |= _there(using, model, chunk) - free
        if not free:
            continue
        try:
            done += change([pk for pk in chunk if pk in free], True)
        except RowLocked:  # for example, a row of another table that must change together with one of these
            locked |= free
    if locked:
        raise rows_locked(using, len(locked), done, describe_lockers(using, model, locked))
    return done


def _there(using: str, model: Model, pks: Sequence[Any]) -> set[Any]:
    connection = connections[using]
    rows = verbs.rows_of(connection, model).filter(pk__in=pks)
    return retrying(connection, lambda: set(rows.values_list("pk", flat=True).all()))

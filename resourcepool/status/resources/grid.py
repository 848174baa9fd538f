"""The state of each resource of a pool, as one cell each."""

from dataclasses import dataclass
from typing import Any

from django.db import connections
from django.db.models import DateTimeField, FloatField, Subquery, Value

from resourcepool.db.dialect import DbNow
from resourcepool.leases import verbs
from resourcepool.resources.state import State, state_details
from resourcepool.status.resources.holders import acquisition_of_outer_row, renewal, shares_history_database
from resourcepool.status.snapshots import fetch_all

MAX_CELLS = 1_000  # of one pool


@dataclass(frozen=True, slots=True)
class Cell:
    """One resource; times in seconds.

    Attributes:
        pk: its primary key as text.
        name: without secrets.
        note: the holder if it is leased; otherwise the reason for its status.
        held: since it was leased, by the history; None: unknown.
        ends: until the lease, cool-down or quarantine ends, unless renewed; None without one.
        is_overdue: whether its holder should have renewed its lease by now, by the history.
    """

    pk: str
    name: str
    state: State
    note: str
    held: float | None
    ends: float | None
    is_overdue: bool = False


def cells_of(model: Any) -> list[Cell]:
    """Return a cell for each resource of a pool, in the order of their keys, in one query.

    It reads every row: use it only for pools of up to ``MAX_CELLS``.
    """
    rows = verbs.rows_of(connections[model.pool.using], model).annotate(
        db_now=DbNow(),
        db_since=_of_acquisition(model, "at", DateTimeField()),
        db_ttl=_of_acquisition(model, "ttl", FloatField()),
    )
    return [_cell(row) for row in fetch_all(rows.order_by("pk")[:MAX_CELLS])]


def _of_acquisition(model: Any, column: str, field: Any) -> Any:
    """Return the expression of a column of the event of its acquisition; NULL if that is in another database."""
    if not shares_history_database(model):
        return Value(None, field)
    return Subquery(acquisition_of_outer_row(model).values(column)[:1])


def _cell(row: Any) -> Cell:
    now, details = row.db_now, state_details(row, row.db_now)
    state = details.state
    is_held = state in (State.LEASED, State.DRAINING)
    # Quarantined while leased, and the lease has ended.
    ends_at_until = state is State.QUARANTINED and not row.in_service and row.until is not None
    ends = ((row.until if ends_at_until else row.busy_before) - now).total_seconds()
    last = renewal(row.db_ttl, ends) if is_held else None
    return Cell(
        pk=str(row.pk),
        name=str(row),
        state=state,
        note=row.holder if is_held else "" if state is State.FREE else details.reason,
        held=max(0.0, (now - row.db_since).total_seconds()) if row.db_since and is_held else None,
        ends=ends if ends > 0 else None,
        is_overdue=last is not None and last.is_overdue,
    )

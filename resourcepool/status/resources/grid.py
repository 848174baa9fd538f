"""The state of each resource of a pool, as one cell each."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from django.db import connections
from django.db.models import CharField, DateTimeField, F, FloatField, Subquery, Value
from django.db.models.functions import Cast, Concat

from resourcepool.db.dialect import DbNow
from resourcepool.leases import verbs
from resourcepool.proxies.models import Proxy
from resourcepool.resources.selectors import selectable
from resourcepool.resources.state import State, state_details
from resourcepool.status.resources.holders import acquisition_of_outer_row, renewal, shares_history_database
from resourcepool.status.snapshots import fetch_union

MAX_CELLS = 1_000  # of one pool

COLUMNS = ("in_service", "status", "holder", "reason", "busy_before", "until")


@dataclass(frozen=True, slots=True)
class Cell:
    """One resource; times in seconds.

    Attributes:
        pk: its primary key as text.
        name: "host:port", or its ``name``, or its first unique text; "" if it has none.
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


def grid(models: Sequence[Any]) -> dict[str, list[Cell]]:
    """Return {label: a cell for each resource, in the order of their keys}, in one query for each database.

    It reads every row: use it only for pools of up to ``MAX_CELLS``. A pool that cannot be read has no cells.
    """
    cells: dict[str, list[Cell]] = {model._meta.label: [] for model in models}
    for using in sorted({model.pool.using for model in models}):
        for label, *columns in _rows([model for model in models if model.pool.using == using]):
            cells[label].append(_cell(*columns))
    return {
        label: sorted(of, key=lambda cell: (len(cell.pk), cell.pk))[:MAX_CELLS] for label, of in cells.items()
    }


def _rows(models: Sequence[Any]) -> list[Any]:
    rows = fetch_union(models, _rows_of)
    if rows is None:
        rows = [row for model in models for row in fetch_union([model], _rows_of) or ()]
    return rows


def _rows_of(model: Any) -> Any:
    rows = verbs.rows_of(connections[model.pool.using], model).order_by()
    rows = rows.annotate(
        grid_pool=Value(model._meta.label, CharField()),
        grid_pk=Cast("pk", CharField()),
        grid_name=Cast(_name(model), CharField()),  # one collation for all pools
        grid_now=DbNow(),
        grid_since=_of_acquisition(model, "at", DateTimeField()),
        grid_ttl=_of_acquisition(model, "ttl", FloatField()),
    )
    return rows.values_list("grid_pool", "grid_pk", "grid_name", "grid_now", "grid_since", "grid_ttl", *COLUMNS)


def _name(model: Any) -> Any:
    """Return the expression of a resource's name without secrets; ``str`` would need the whole row."""
    if issubclass(model, Proxy):
        return Concat("host", Value(":"), Cast("port", CharField()))
    texts = {name: field for name, field in selectable(model).items() if isinstance(field, CharField)}
    unique = (name for name, field in texts.items() if field.unique and not field.primary_key)
    named = "name" if "name" in texts else next(unique, None)
    return F(named) if named else Value("")


def _of_acquisition(model: Any, column: str, field: Any) -> Any:
    """Return the expression of a column of the event of its acquisition; NULL if that is in another database."""
    if not shares_history_database(model):
        return Value(None, field)
    return Subquery(acquisition_of_outer_row(model).values(column)[:1])


def _cell(
    pk: str,
    name: str,
    now: datetime.datetime,
    since: datetime.datetime | None,
    ttl: float | None,
    *columns: Any,
) -> Cell:
    """Return the cell of a resource.

    Args:
        since: when it was acquired; ``ttl``: of its lease.
        columns: the values of ``COLUMNS``.
    """
    row = SimpleNamespace(**dict(zip(COLUMNS, columns, strict=True)))
    details = state_details(row, now)
    state = details.state
    is_held = state in (State.LEASED, State.DRAINING)
    # Quarantined while leased, and the lease has ended.
    ends_at_until = state is State.QUARANTINED and not row.in_service and row.until is not None
    ends = ((row.until if ends_at_until else row.busy_before) - now).total_seconds()
    last = renewal(ttl, ends) if is_held else None
    return Cell(
        pk=pk,
        name=name or "",
        state=state,
        note=row.holder if is_held else "" if state is State.FREE else details.reason,
        held=max(0.0, (now - since).total_seconds()) if since and is_held else None,
        ends=ends if ends > 0 else None,
        is_overdue=last is not None and last.is_overdue,
    )

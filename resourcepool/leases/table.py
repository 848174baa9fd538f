"""Quoted names and fixed conditions of a leased table, for the SQL of leases and waiting."""

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db import dialect
from resourcepool.db.dialect import cached_per_database
from resourcepool.exceptions import BadOption
from resourcepool.leases.models import LEASE_COLUMNS, AbstractLease

Model = type[AbstractLease]


def inherited_from(model: Model) -> type[models.Model] | None:
    """Return the model whose table has the lease columns of ``model``, if that is another table.

    That happens with Django's multi-table inheritance. A single UPDATE cannot claim a row of two tables.
    """
    used = sorted({*LEASE_COLUMNS, *model.claimable_when})
    owners = [model._meta.get_field(name).model._meta.concrete_model for name in used]
    return next((owner for owner in owners if owner is not model._meta.concrete_model), None)


def refuse_inherited(model: Model) -> None:
    """Raise BadOption if the lease columns of ``model`` are in another table."""
    if (owner := inherited_from(model)) is not None:
        name = owner._meta.label
        reason = f"its lease columns are in the table of {name}: lease through {name}, or make {name} abstract"
        raise BadOption("model", model._meta.label, because=reason)


class Table:
    """The quoted names of one model's table on one database, and its condition for "free"."""

    def __init__(self, connection: BaseDatabaseWrapper, model: Model) -> None:
        refuse_inherited(model)
        quote, db_dialect, meta = connection.ops.quote_name, dialect.of(connection), model._meta
        assert meta.pk is not None  # noqa: S101 (for the type checker: every model has one)
        self.columns = columns = {field.name: quote(str(field.column)) for field in meta.concrete_fields}
        self.name = quote(meta.db_table)
        self.pk = columns[meta.pk.name]
        self.busy_before, self.fence, self.holder = (
            columns[name] for name in ("busy_before", "fence", "holder")
        )
        # A literal, because a bound parameter keeps SQLite from using a partial index.
        conditions = [
            f"{columns[name]} = {db_dialect.true if value else db_dialect.false}"
            for name, value in model.claimable_when.items()
        ]
        self.claimable = "".join(f" AND {condition}" for condition in conditions)
        self.claimable_of_row = "".join(f" AND {self.name}.{condition}" for condition in conditions)
        self.free = f"{self.busy_before} <= {db_dialect.now}{self.claimable}"
        self.free_by_index = f"{self.busy_before} <= {db_dialect.indexed_now}{self.claimable}"


table_of = cached_per_database(Table)

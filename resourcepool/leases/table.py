"""Quoted names and fixed conditions of a leased table, for the SQL in ``verbs`` and ``search``."""

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.exceptions import BadOption
from resourcepool.leases.models import LEASE_COLUMNS, AbstractLease

Model = type[AbstractLease]


def inherited_from(model: Model) -> type[models.Model] | None:
    """Return the model whose table has the leases of ``model``, if it is another one.

    Django's multi-table inheritance makes such models. No single UPDATE can claim a row of two tables.
    """
    used = sorted({*LEASE_COLUMNS, *model.claimable_when})
    owners = [model._meta.get_field(name).model._meta.concrete_model for name in used]
    return next((owner for owner in owners if owner is not model._meta.concrete_model), None)


def refuse_inherited(model: Model) -> None:
    """Raise BadOption if the leases of ``model`` are not in its own table."""
    if (owner := inherited_from(model)) is not None:
        name = owner._meta.label
        allowed = f"its leases are in the table of {name}, so lease through {name}, or let that be abstract"
        raise BadOption("model", model._meta.label, because=allowed)


class Table:
    """The quoted names of one model's table on one database, and its condition for "free"."""

    def __init__(self, connection: BaseDatabaseWrapper, model: Model) -> None:
        refuse_inherited(model)
        quote, db_dialect, meta = connection.ops.quote_name, dialect.of(connection), model._meta
        assert meta.pk is not None  # noqa: S101 (for the type checker: every model has one)
        columns = {field.name: quote(str(field.column)) for field in meta.concrete_fields}
        self.name = quote(meta.db_table)
        self.pk = columns[meta.pk.name]
        self.busy_before, self.fence, self.holder = (
            columns[name] for name in ("busy_before", "fence", "holder")
        )
        # A literal, because a bound parameter keeps SQLite from using a partial index.
        wanted = [
            f"{columns[name]} = {db_dialect.true if value else db_dialect.false}"
            for name, value in model.claimable_when.items()
        ]
        self.claimable = "".join(f" AND {one}" for one in wanted)
        self.claimable_of_row = "".join(f" AND {self.name}.{one}" for one in wanted)
        self.free = f"{self.busy_before} <= {db_dialect.now}{self.claimable}"
        self.free_by_index = f"{self.busy_before} <= {db_dialect.indexed_now}{self.claimable}"


_tables: dict[tuple[Model, str], Table] = {}


def table_of(connection: BaseDatabaseWrapper, model: Model) -> Table:
    """Return the (remembered) names of ``model``'s table."""
    which = (model, connection.vendor)
    if which not in _tables:
        _tables[which] = Table(connection, model)
    return _tables[which]

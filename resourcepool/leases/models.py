"""The leased row: the three columns of every kind of lease."""

import datetime
from collections.abc import Iterable
from typing import Any, ClassVar, Self

from django.conf import settings
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db import dialect
from resourcepool.db.dialect import DbNow, FenceField, cached_per_database
from resourcepool.db.dialect.statement import Where
from resourcepool.db.transactions import fail_if_locked
from resourcepool.exceptions import BadOption
from resourcepool.leases.terms import MAX_LENGTH
from resourcepool.text import CharField
from resourcepool.translation import gettext_lazy as _

LEASE_COLUMNS = frozenset({"busy_before", "fence", "holder"})
# update_or_create adds fields that define ``pre_save`` to ``update_fields``.
ADDED_BY_DJANGO = frozenset({"busy_before", "fence"})


def long_ago() -> datetime.datetime:
    """Return the ``busy_before`` of a new row: a fixed time in the past."""
    moment = datetime.datetime(2000, 1, 1)  # noqa: DTZ001
    return moment.replace(tzinfo=datetime.UTC) if settings.USE_TZ else moment


class LeaseQuerySet(models.QuerySet[Any]):
    """Filters over leased rows, by the database's clock. Claiming goes through the model's pool."""

    def bulk_create(self, objs: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        """Insert the objects; a copy of a stored row starts without a holder."""
        rows = list(objs)
        for row in rows:
            row.reset_lease_columns()
        return super().bulk_create(rows, *args, **kwargs)

    def held(self) -> Self:
        """Rows with a running lease."""
        return self.filter(busy_before__gt=DbNow()).exclude(holder="")

    def held_by(self, holder: str) -> Self:
        """Rows with a running lease whose holder is exactly this text."""
        return self.held().filter(holder=holder)

    def available(self) -> Self:
        """Rows that can be claimed now."""
        return self.filter(busy_before__lte=DbNow(), **self.model.claimable_when)

    def expired(self) -> Self:
        """Rows whose last lease expired without being released."""
        return self.filter(busy_before__lte=DbNow()).exclude(holder="")


class AbstractLease(models.Model):
    """A row with at most one holder at a time.

    ``(pk, fence)`` identifies exactly one grant, for ever, even if a row is deleted and recreated under the same key: a
    new row's fence starts at the database's clock. The three columns change only through the verbs in
    ``leases/verbs.py``; ``save()`` does not change them on existing rows.
    """

    # Column values that a claimable row has, besides a ``busy_before`` in the past.
    claimable_when: ClassVar[dict[str, bool]] = {}
    # Whether its leases emit all events (``signals``) and report leaks; named locks: see ``emits_grants``.
    emits_events: ClassVar[bool] = True
    # Whether waiters wait per name (``name_of``) instead of for the whole table; a ticket's selector is then that name.
    line_per_name: ClassVar[bool] = False
    # Whether a row is deleted on release when it has no waiters.
    deletes_idle_rows: ClassVar[bool] = False

    busy_before = models.DateTimeField(
        _("busy before"),
        default=long_ago,
        editable=False,
        help_text=_("Leased until this time of the database's clock; free afterwards."),
    )
    fence = FenceField(
        _("fence"), default=0, editable=False, help_text=_("Increases with every grant and every release.")
    )
    holder = CharField(
        _("holder"),
        max_length=MAX_LENGTH,
        default="",
        blank=True,
        editable=False,
        help_text=_("Holder's name, for people; empty after a release."),
    )

    objects: ClassVar[Any] = LeaseQuerySet.as_manager()

    _was_stored = False  # read or saved, so its lease columns are those of another row, or outdated

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save, but never write busy_before, fence and holder of an existing row.

        An instance may contain a lease that has been replaced since it was read.

        Raises:
            BadOption: ``update_fields`` names one of them.
            RowLocked: another transaction, such as a holder's ``guard``, kept the row locked for more than 3 s.
                Inside a transaction of yours, your settings decide how long to wait, and the error is the database's.
        """
        names = set(kwargs.get("update_fields") or ())
        lease_columns = LEASE_COLUMNS & names
        if lease_columns == ADDED_BY_DJANGO:
            kwargs["update_fields"] = names - lease_columns
        elif lease_columns:
            raise BadOption("update_fields", sorted(lease_columns), because="these change only through a lease")
        super().save(*args, **kwargs)
        self._was_stored = True

    @classmethod
    def from_db(cls, *args: Any, **kwargs: Any) -> Self:
        instance = super().from_db(*args, **kwargs)
        instance._was_stored = True
        return instance

    def reset_lease_columns(self) -> None:
        """Before an insert: give a copy of a stored row the lease columns of a new one."""
        if self._was_stored or not self._state.adding:
            self.busy_before, self.fence, self.holder = long_ago(), 0, ""

    def _do_insert(self, *args: Any, **kwargs: Any) -> Any:
        self.reset_lease_columns()
        return super()._do_insert(*args, **kwargs)  # type: ignore[misc]  # the stubs lack it

    def _do_update(self, base_qs: Any, using: Any, pk_val: Any, values: Any, fields: Any, *rest: Any) -> Any:
        # Manual copies, positional arguments and loaddata bypass save(), but not this.
        written = [v for v in values if self._may_write(v[0].name, v[2], by_name=fields is not None)]
        with fail_if_locked(using):
            return super()._do_update(base_qs, using, pk_val, written, fields, *rest)

    def _may_write(self, name: str, value: Any, *, by_name: bool) -> bool:
        return name not in LEASE_COLUMNS

    @classmethod
    def where(cls, selector: str, connection: BaseDatabaseWrapper) -> Where:
        """Return the SQL condition of a ticket's ``selector`` (JSON text)."""
        return Where()

    @classmethod
    def name_of(cls, pk: Any) -> str:
        """Return the name that waiters for the row ``pk`` use, if ``line_per_name``."""
        return str(pk)

    @classmethod
    def return_due_rows(cls, using: str) -> None:
        """Return rows to service that are due; called now and then while nothing is free."""


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

"""The leased row: three columns that every kind of lease has."""

import datetime
from collections.abc import Iterable
from typing import Any, ClassVar, Self

from django.conf import settings
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext_lazy as _

from resourcepool.database.short_statements import fail_if_locked
from resourcepool.database.where import Where
from resourcepool.dialect import DbNow, FenceField
from resourcepool.exceptions import BadOption
from resourcepool.leases.terms import MAX_LENGTH
from resourcepool.text import CharField

LEASE_COLUMNS = frozenset({"busy_before", "fence", "holder"})
# update_or_create adds fields with a ``pre_save`` of their own to ``update_fields``.
ADDED_BY_DJANGO = frozenset({"busy_before", "fence"})


def long_ago() -> datetime.datetime:
    """Return the fixed moment in the past that a new row starts with: it was never busy."""
    moment = datetime.datetime(2000, 1, 1)  # noqa: DTZ001
    return moment.replace(tzinfo=datetime.UTC) if settings.USE_TZ else moment


class LeaseQuerySet(models.QuerySet[Any]):
    """Filters over leased rows, by the database's clock. Claiming goes through the model's pool."""

    def bulk_create(self, objs: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        """Insert them; a copy of a row that was read starts without a holder."""
        made = list(objs)
        for one in made:
            one.begin_anew()
        return super().bulk_create(made, *args, **kwargs)

    def held(self) -> Self:
        """Rows with a running lease."""
        return self.filter(busy_before__gt=DbNow()).exclude(holder="")

    def held_by(self, holder: str) -> Self:
        """Rows with a running lease whose holder is exactly this text."""
        return self.held().filter(holder=holder)

    def available(self) -> Self:
        """Rows that a claim would get."""
        return self.filter(busy_before__lte=DbNow(), **self.model.claimable_when)

    def expired(self) -> Self:
        """Rows whose last lease expired without being released."""
        return self.filter(busy_before__lte=DbNow()).exclude(holder="")


class AbstractLease(models.Model):
    """A row that at most one holder has at a time.

    ``(pk, fence)`` identifies exactly one grant, for ever, also when a row is deleted and created again under the same
    key: a new row's fence begins at the database's clock. The three columns change only through the verbs in
    ``leases/verbs.py``; ``save()`` does not change them on existing rows.
    """

    # The condition for a claim, besides a passed busy_before.
    claimable_when: ClassVar[dict[str, bool]] = {}
    # Whether events of its leases are sent (``signals``).
    emits_events: ClassVar[bool] = True
    # Whether waiters stand in a line of their own for each name (``name_of``), not in one for the whole table. Then a
    # ticket's selector is that name.
    line_per_name: ClassVar[bool] = False
    # Whether a row is for those who wait at that moment: given back while nobody does, it is removed.
    deletes_idle_rows: ClassVar[bool] = False

    busy_before = models.DateTimeField(
        _("busy before"),
        default=long_ago,
        editable=False,
        help_text=_("Taken until this moment of the database's clock; free once it has passed."),
    )
    fence = FenceField(
        _("fence"), default=0, editable=False, help_text=_("Goes up with every grant and every release.")
    )
    holder = CharField(
        _("holder"),
        max_length=MAX_LENGTH,
        default="",
        blank=True,
        editable=False,
        help_text=_("Who has it, for people to read; empty after a release."),
    )

    objects: ClassVar[Any] = LeaseQuerySet.as_manager()

    _was_stored = False  # read or saved: its lease columns belong to another row, or are outdated

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save, but never write busy_before, fence and holder of an existing row.

        An instance read a moment ago may contain a lease that has since been replaced (document 000's ``close()`` frees
        its successor's lease this way).

        Raises:
            BadOption: ``update_fields`` names one of them.
            RowLocked: another transaction, such as a holder's ``guard``, has kept the row locked for more than 3 s.
                Inside your own transaction your settings decide how long to wait, and the error is the database's own.
        """
        names = set(kwargs.get("update_fields") or ())
        asked = LEASE_COLUMNS & names
        if asked == ADDED_BY_DJANGO:
            kwargs["update_fields"] = names - asked
        elif asked:
            raise BadOption("update_fields", sorted(asked), because="these change only through a lease")
        super().save(*args, **kwargs)
        self._was_stored = True

    @classmethod
    def from_db(cls, *args: Any, **kwargs: Any) -> Self:
        instance = super().from_db(*args, **kwargs)
        instance._was_stored = True
        return instance

    def begin_anew(self) -> None:
        """Before an insert: give a copy of a row that was read or saved the lease columns of a new row."""
        if self._was_stored or not self._state.adding:
            self.busy_before, self.fence, self.holder = long_ago(), 0, ""

    def _do_insert(self, *args: Any, **kwargs: Any) -> Any:
        self.begin_anew()
        return super()._do_insert(*args, **kwargs)  # type: ignore[misc]  # the stubs lack it

    def _do_update(self, base_qs: Any, using: Any, pk_val: Any, values: Any, fields: Any, *rest: Any) -> Any:
        # Copies made by hand, positional arguments and loaddata bypass save(), but not this.
        kept = [v for v in values if self._may_write(v[0].name, v[2], by_name=fields is not None)]
        with fail_if_locked(using):
            return super()._do_update(base_qs, using, pk_val, kept, fields, *rest)

    def _may_write(self, name: str, value: Any, *, by_name: bool) -> bool:
        return name not in LEASE_COLUMNS

    @classmethod
    def where(cls, selector: str, connection: BaseDatabaseWrapper) -> Where:
        """Return the condition that a ticket's ``selector`` (JSON text) describes."""
        return Where()

    @classmethod
    def name_of(cls, pk: Any) -> str:
        """Return the name under which the row with this key is waited for, if there is a line per name."""
        return str(pk)

    @classmethod
    def return_due_rows(cls, using: str) -> None:
        """Called now and then while nothing is free: make rows claimable whose time out of service is over."""

"""The leased row: three columns that every kind of held thing has."""

import datetime
from collections.abc import Iterable
from typing import Any, ClassVar, Self

from django.conf import settings
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext_lazy as _

from resourcepool.database.short_statements import brief
from resourcepool.database.where import Where
from resourcepool.dialect import DbNow, FenceField
from resourcepool.exceptions import BadOption
from resourcepool.leases.holder import MAX_LENGTH

LEASE_COLUMNS = frozenset({"busy_before", "fence", "holder"})
# By update_or_create to ``update_fields``: what has a ``pre_save`` of its own.
ADDED_BY_DJANGO = frozenset({"busy_before", "fence"})


def long_ago() -> datetime.datetime:
    """Return the fixed moment in the past that a row is born with: it was never busy."""
    moment = datetime.datetime(2000, 1, 1)  # noqa: DTZ001
    return moment.replace(tzinfo=datetime.UTC) if settings.USE_TZ else moment


class LeaseQuerySet(models.QuerySet[Any]):
    """Filters over leased rows, by the database's clock. Claiming goes through the model's pool."""

    def bulk_create(self, objs: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        """Insert them; of a copy of a row that was read, nobody has the new one."""
        made = list(objs)
        for one in made:
            one.begin_anew()
        return super().bulk_create(made, *args, **kwargs)

    def held(self) -> Self:
        """Rows that somebody has a running lease on."""
        return self.filter(busy_before__gt=DbNow()).exclude(holder="")

    def held_by(self, holder: str) -> Self:
        """Rows with a running lease whose holder is exactly this text."""
        return self.held().filter(holder=holder)

    def available(self) -> Self:
        """Rows that a claim would be granted."""
        return self.filter(busy_before__lte=DbNow(), **self.model.claimable_when)

    def expired(self) -> Self:
        """Rows whose last lease ran out without being released."""
        return self.filter(busy_before__lte=DbNow()).exclude(holder="")


class AbstractLease(models.Model):
    """A row that at most one holder has at a time.

    ``(pk, fence)`` names exactly one grant, for ever, also where a row is deleted and made again under the same key: a
    new one's fence begins at the database's clock. The three columns change only through the verbs in
    ``leases/verbs.py``; ``save()`` leaves them alone on rows that exist.
    """

    # What must hold, besides a passed busy_before, for a row to be handed out.
    claimable_when: ClassVar[dict[str, bool]] = {}
    # Whether what happens to its leases is told (``signals``).
    is_told: ClassVar[bool] = True

    busy_before = models.DateTimeField(
        _("busy before"),
        default=long_ago,
        editable=False,
        help_text=_("Taken until this moment of the database's clock; free once it has passed."),
    )
    fence = FenceField(
        _("fence"), default=0, editable=False, help_text=_("Goes up with every grant and every release.")
    )
    holder = models.CharField(
        _("holder"),
        max_length=MAX_LENGTH,
        default="",
        blank=True,
        editable=False,
        help_text=_("Who has it, for people to read; empty after a release."),
    )

    objects: ClassVar[Any] = LeaseQuerySet.as_manager()

    _was_stored = False  # read or saved: what it says of a lease is another row's, or over

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save, but never write busy_before, fence and holder of a row that exists.

        A copy read a moment ago may carry the lease of somebody who has since been replaced (document 000's
        ``close()`` frees its successor's lease this way).

        Raises:
            BadOption: they are asked for by name.
            RowLocked: somebody's transaction keeps the row locked, a holder's ``guard`` for example, for more than 3 s;
                inside a transaction of yours one waits as your settings say, and the error is the database's own.
        """
        names = set(kwargs.get("update_fields") or ())
        asked = LEASE_COLUMNS & names
        if asked == ADDED_BY_DJANGO:
            kwargs["update_fields"] = names - asked
        elif asked:
            raise BadOption("update_fields", sorted(asked), "these change only through a lease")
        super().save(*args, **kwargs)
        self._was_stored = True

    @classmethod
    def from_db(cls, *args: Any, **kwargs: Any) -> Self:
        instance = super().from_db(*args, **kwargs)
        instance._was_stored = True
        return instance

    def begin_anew(self) -> None:
        """Before it is inserted: a copy of a row that was read or saved becomes a row that nobody has."""
        if self._was_stored or not self._state.adding:
            self.busy_before, self.fence, self.holder = long_ago(), 0, ""

    def _do_insert(self, *args: Any, **kwargs: Any) -> Any:
        self.begin_anew()
        return super()._do_insert(*args, **kwargs)  # type: ignore[misc]  # the stubs lack it

    def _do_update(self, base_qs: Any, using: Any, pk_val: Any, values: Any, fields: Any, *rest: Any) -> Any:
        # Copies made by hand, positional arguments and loaddata come past save(), but not past this.
        kept = [v for v in values if self._may_write(v[0].name, v[2], by_name=fields is not None)]
        with brief(using):
            return super()._do_update(base_qs, using, pk_val, kept, fields, *rest)

    def _may_write(self, name: str, value: Any, *, by_name: bool) -> bool:
        return name not in LEASE_COLUMNS

    @classmethod
    def where(cls, selector: str, connection: BaseDatabaseWrapper) -> Where:
        """Return the condition that a ticket's ``selector`` (JSON text) stands for."""
        return Where()

    @classmethod
    def revive(cls, using: str) -> None:
        """Called now and then while nothing is free: make claimable what has become so by the clock."""

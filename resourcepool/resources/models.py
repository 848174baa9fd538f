"""The abstract resource model: a leasable row with service state, health and tags."""

from collections.abc import Iterable
from typing import Any, ClassVar, Self

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models, router
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db.dialect.statement import Where
from resourcepool.events.field import SentenceField
from resourcepool.leases.models import AbstractLease
from resourcepool.resources import selectors
from resourcepool.resources.pool import Pool
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.selectors import TagsField, parse_tags
from resourcepool.resources.state import STATE_COLUMNS, Status, Verdict
from resourcepool.text import CharField, TextField
from resourcepool.translation import gettext_lazy as _

# Besides Django's own. operate: all operations; lease and quarantine: over REST.
OWN_PERMISSIONS = ("operate", "lease", "quarantine")
PERMISSIONS = ("add", "change", "delete", "view", *OWN_PERMISSIONS)


class AbstractResource(AbstractLease):
    """The base class of resource models; ``YourModel.pool`` leases its rows.

    Example::

        class Phone(AbstractResource):
            number = models.CharField(max_length=20, unique=True)
            pool = Pool(ttl=120, cooldown=5)  # only where the settings' defaults do not fit

            class Meta(AbstractResource.Meta):  # adds the index that claims use, and the permission operate_phone
                verbose_name = "phone"

        with Phone.pool.lease(timeout=30) as lease:
            call(lease.resource.number)

    Not promised: that the resource itself knows its holder. The database cannot stop a process that keeps using a
    phone, a proxy or an account after its lease was lost; see ``Lease.ensure_held`` and ``Lease.guard``.
    """

    default_checker: ClassVar[str | None] = None  # dotted path; RESOURCEPOOL["CHECKS"] may name another one
    claimable_when: ClassVar[dict[str, bool]] = {"in_service": True}
    pool: Pool[Any] = Pool()

    in_service = models.BooleanField(_("in service"), default=True, help_text=_("Can be leased."))
    status = CharField(
        _("status"), max_length=20, choices=Status.choices, default=Status.IN_SERVICE, editable=False
    )
    reason = SentenceField(_("reason"), default="", blank=True, editable=False)
    until = models.DateTimeField(_("until"), null=True, blank=True, editable=False)
    strikes = models.PositiveIntegerField(_("strikes"), default=0, editable=False)
    struck_at = models.DateTimeField(_("last strike"), null=True, blank=True, editable=False)
    verdict = CharField(
        _("last check"), max_length=10, choices=Verdict.choices, default="", blank=True, editable=False
    )
    checked_at = models.DateTimeField(_("checked at"), null=True, blank=True, editable=False)
    latency = models.FloatField(_("latency (s)"), null=True, blank=True, editable=False)
    tags = TagsField(_("tags"), max_length=500, default="", blank=True, help_text=_("Words, e.g. eu fast."))
    weight = models.PositiveIntegerField(
        _("weight"),
        default=1,
        validators=[MinValueValidator(1), MaxValueValidator(1_000_000)],
        help_text=_("Relative chance of being chosen by the strategy “random”."),
    )
    notes = TextField(_("notes"), default="", blank=True)

    objects: ClassVar[Any] = ResourceQuerySet.as_manager()

    class Meta:
        abstract = True
        default_permissions = PERMISSIONS
        indexes = [models.Index(fields=["in_service", "busy_before"])]

    @classmethod
    def from_db(cls, *args: Any, **kwargs: Any) -> Self:
        instance = super().from_db(*args, **kwargs)
        instance._note_state()
        return instance

    def refresh_from_db(self, using: str | None = None, fields: Any = None, *args: Any, **kwargs: Any) -> None:
        super().refresh_from_db(using, fields, *args, **kwargs)
        self._note_state(fields)

    def save(self, *args: Any, **kwargs: Any) -> None:
        super().save(*args, **kwargs)
        self._note_state(kwargs.get("update_fields"))

    def _note_state(self, names: Iterable[str] | None = None) -> None:
        noted = STATE_COLUMNS if names is None else STATE_COLUMNS & set(names)
        # A new dictionary each time, because a copy of the instance may share the old one.
        read = self.__dict__.get("_state_read", {})
        self.__dict__["_state_read"] = {**read, **{name: self.__dict__.get(name) for name in noted}}

    def _may_write(self, name: str, value: Any, *, by_name: bool) -> bool:
        # Write only columns changed on this instance: an old instance must not undo later decisions of operators.
        if name in STATE_COLUMNS and not by_name:
            # Not read from the database: bulk_create() wrote exactly these values; a copy made by hand knows none.
            unknown = value if self._state.adding else object()
            return bool(value != self.__dict__.get("_state_read", {}).get(name, unknown))
        return super()._may_write(name, value, by_name=by_name)

    def for_holder(self) -> dict[str, Any]:
        """Return the data that REST clients get with a lease, as JSON (docs/reference/rest.md).

        By default the name, the tags and the columns that your model adds, including secrets.
        """
        own = [field for field in self._meta.concrete_fields if field.name not in _SHARED]
        return {
            "name": str(self),
            "tags": parse_tags(self.tags),
            **{field.attname: getattr(self, field.attname) for field in own},
        }

    @classmethod
    def where(cls, selector: str, connection: BaseDatabaseWrapper) -> Where:
        return selectors.where(cls, selector, connection.alias)

    @classmethod
    def return_due_rows(cls, using: str) -> None:
        ResourceQuerySet(model=cls, using=using).return_due()

    def delete(self, using: str | None = None, keep_parents: bool = False) -> tuple[int, dict[str, int]]:
        """Delete the row, or retire it if it is held; its holder is not disturbed."""
        using = using or router.db_for_write(type(self), instance=self)
        rows = ResourceQuerySet(model=type(self), using=using)
        return rows.filter(pk=self.pk).delete()


_SHARED = frozenset(field.name for field in AbstractResource._meta.fields)

"""The leased rows of locks. The holder of a row holds the lock or a part of it."""

from typing import Any, ClassVar

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db.dialect import KeyField
from resourcepool.db.dialect.statement import Where
from resourcepool.leases.models import AbstractLease
from resourcepool.translation import gettext_lazy as _

MAX_NAME = 200
OPERATOR_PERMISSIONS = ("view", "operate")  # rows are not added or deleted by hand
NUMBER_MARK = "#"  # separates name and number in a row's key


class AbstractNamed(AbstractLease):
    """A row that is acquired by its name. The history leaves out its short grants, which are too many."""

    emits_events: ClassVar[bool] = False  # no leaks: a thread that has ended releases nothing
    emits_grants: ClassVar[bool] = True
    records_short_grants: ClassVar[bool] = False
    records_operations: ClassVar[bool] = True
    line_per_name: ClassVar[bool] = True

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name_of(self.pk) or str(self.pk)

    @classmethod
    def where(cls, selector: str, connection: BaseDatabaseWrapper) -> Where:
        """Return the condition for the rows of the name ``selector``."""
        return Where(f" AND {connection.ops.quote_name('name')} = %s", (selector,))


class Lock(AbstractNamed):
    """The row of a ``Lock``."""

    name = KeyField(_("name"), max_length=MAX_NAME, primary_key=True)

    class Meta:
        verbose_name = _("lock")
        verbose_name_plural = _("locks")
        default_permissions = (*OPERATOR_PERMISSIONS, "lease")  # over REST


class AbstractNumbered(AbstractNamed):
    """One of several rows of one name; its key is the name, "#" and a number."""

    key = KeyField(_("key"), max_length=MAX_NAME + 20, primary_key=True, editable=False)
    name = KeyField(_("name"), max_length=MAX_NAME, editable=False)

    class Meta:
        abstract = True

    @classmethod
    def name_of(cls, pk: Any) -> str:
        return str(pk).rpartition(NUMBER_MARK)[0]

    @classmethod
    def key_of(cls, name: str, number: int) -> str:
        return f"{name}{NUMBER_MARK}{number}"


class AbstractPermit(AbstractNumbered):
    """One permit of a name. Permits out of service are not granted: the number of permits was reduced."""

    claimable_when: ClassVar[dict[str, bool]] = {"in_service": True}

    in_service = models.BooleanField(_("in service"), default=True, editable=False)

    class Meta:
        abstract = True
        default_permissions = OPERATOR_PERMISSIONS
        indexes = [models.Index(fields=["name", "in_service", "busy_before"], name="rp_%(class)s_free")]


class SemaphorePermit(AbstractPermit):
    """One permit of a ``Semaphore``."""

    class Meta(AbstractPermit.Meta):
        verbose_name = _("semaphore")
        verbose_name_plural = _("semaphores")


class RWLockPermit(AbstractPermit):
    """One permit of a ``RWLock``: a reader holds one, a writer all of them.

    A row with an empty name is not a permit but an upgrade intent, held by the one reader that waits to upgrade. It has
    no waiters.
    """

    INTENT: ClassVar[str] = "upgrade"  # replaces the number in its key

    class Meta(AbstractPermit.Meta):
        verbose_name = _("read-write lock")
        verbose_name_plural = _("read-write locks")

    @classmethod
    def name_of(cls, pk: Any) -> str:
        """Return the name in a key; "" for an upgrade intent."""
        name, _, number = str(pk).rpartition(NUMBER_MARK)
        return "" if number == cls.INTENT else name

    @classmethod
    def intent_of(cls, name: str) -> str:
        return f"{name}{NUMBER_MARK}{cls.INTENT}"


class AbstractNotification(AbstractNumbered):
    """A notification; its number is the primary key of the waiter's ticket.

    It is leased, so that it passes to the next waiter if this one crashes before it has used it.
    """

    deletes_idle_rows: ClassVar[bool] = True  # a notification without waiters is removed
    emits_grants: ClassVar[bool] = False

    class Meta:
        abstract = True
        indexes = [models.Index(fields=["name", "busy_before"], name="rp_%(class)s_free")]


class ConditionWaiter(AbstractNotification):
    """A notified waiter of a ``Condition``."""

    class Meta(AbstractNotification.Meta):
        verbose_name = _("condition")
        verbose_name_plural = _("conditions")
        default_permissions = ("view",)


class Barrier(AbstractNotification):
    """A ``Barrier``: row number 0 is the barrier itself, the others are its notified waiters."""

    class Meta(AbstractNotification.Meta):
        verbose_name = _("barrier")
        verbose_name_plural = _("barriers")
        default_permissions = OPERATOR_PERMISSIONS

    @classmethod
    def own_key(cls, name: str) -> str:
        """Return the key of the barrier's own row."""
        return cls.key_of(name, 0)

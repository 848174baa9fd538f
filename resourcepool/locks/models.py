"""The leased rows of locks, by name. The holder of a row holds the lock, or a part of it."""

from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext_lazy as _

from resourcepool import options
from resourcepool.database.where import Where
from resourcepool.dialect import KeyField
from resourcepool.exceptions import BadOption
from resourcepool.leases.models import AbstractLease

MAX_NAME = 200
OPERATOR_PERMISSIONS = ("view", "operate")  # permissions: nobody adds or deletes these by hand
NUMBER_MARK = "#"  # between the name and the number in the key of one of several rows


class AbstractNamed(AbstractLease):
    """A row that is waited for by its name. The history tells what operators do to it, and when it was lost."""

    emits_events: ClassVar[bool] = False  # thousands of grants per second are not for the history
    records_operations: ClassVar[bool] = True
    line_per_name: ClassVar[bool] = True

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name_of(self.pk) or str(self.pk)

    def clean(self) -> None:
        """Refuse a name that is not one printable line."""
        try:
            options.name("name", self.name_of(self.pk), most=MAX_NAME)
        except BadOption:
            message = _("One line of at most %(most)d printable characters.") % {"most": MAX_NAME}
            raise ValidationError({"name": message}) from None

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


class AbstractPart(AbstractNamed):
    """One of several rows of one name; its key is the name, "#" and a number."""

    key = KeyField(_("key"), max_length=MAX_NAME + 20, primary_key=True, editable=False)
    name = KeyField(_("name"), max_length=MAX_NAME, editable=False)

    class Meta:
        abstract = True

    @classmethod
    def name_of(cls, pk: Any) -> str:
        """Return the name in a key."""
        return str(pk).rpartition(NUMBER_MARK)[0]

    @classmethod
    def key_of(cls, name: str, number: int) -> str:
        """Return the key of the row with this number."""
        return f"{name}{NUMBER_MARK}{number}"


class AbstractPermit(AbstractPart):
    """One of the permits of a name. Those that are not in service are not granted: there are fewer permits now."""

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

    A row without a name is no permit: the one reader of a lock that waits to write holds it. It has no waiters.
    """

    INTENT: ClassVar[str] = "upgrade"  # in its key, in the place of a number

    class Meta(AbstractPermit.Meta):
        verbose_name = _("read-write lock")
        verbose_name_plural = _("read-write locks")

    @classmethod
    def name_of(cls, pk: Any) -> str:
        """Return the name in a key; "" if the row is no permit."""
        name, _, number = str(pk).rpartition(NUMBER_MARK)
        return "" if number == cls.INTENT else name

    @classmethod
    def intent_of(cls, name: str) -> str:
        """Return the key of the row that the one reader that waits to write holds."""
        return f"{name}{NUMBER_MARK}{cls.INTENT}"


class Notification(AbstractPart):
    """What one waiter of a ``Condition`` is given when it is notified; its number is that of the waiter's ticket.

    It is a lease, so that it passes to the next waiter if this one dies before it has taken the lock again.
    """

    deletes_idle_rows: ClassVar[bool] = True  # only those that wait already

    class Meta:
        verbose_name = _("condition or barrier")
        verbose_name_plural = _("conditions and barriers")
        default_permissions = OPERATOR_PERMISSIONS
        indexes = [models.Index(fields=["name", "busy_before"], name="rp_notification_free")]

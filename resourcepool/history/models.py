"""One row for each thing that happened to a lease or a resource; only added and, when old, removed."""

import datetime
from typing import Any, ClassVar, Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from resourcepool.dialect import DbLater, KeyField, MicrosUntil
from resourcepool.events import SentenceField
from resourcepool.signals import What

# How a lease ends that its holder gives back while it is still the holder's: nobody else tells of its end.
ENDS = frozenset({What.RELEASED, What.HANDED_OVER, What.FIXED, What.QUARANTINED})

# The events that tell of an acquisition: its own, or that of the whole lease. The kinds are named for the index.
ACQUISITION = models.Q(what=What.ACQUIRED) | models.Q(what__in=sorted(ENDS), is_whole=True)

MAX_TEXT = 200
MAX_ROW = 220  # the longest key there is: a name of 200 characters, and the number of a permit
MAX_ACTOR = 150


def storable(value: object, most: int) -> str:
    """Return ``value`` as text that every database takes: without NUL, and with ? for what is no character."""
    text = str(value)
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    return text.replace("\0", "")[:most]


class EventQuerySet(models.QuerySet[Any]):
    """Filters over events."""

    def of(self, row: models.Model) -> Self:
        """Return what happened to this one row."""
        return self.filter(pool=row._meta.label_lower, row=storable(row.pk, MAX_ROW))

    def acquisitions(self) -> Self:
        """Return those that tell of an acquisition, one for each lease."""
        return self.filter(ACQUISITION)

    def since(self, seconds: float) -> Self:
        """Return what happened within the last so many seconds, by the database's clock."""
        return self.filter(at__gt=DbLater(-seconds))

    def with_age(self) -> Self:
        """Return them with what ``Event.age`` is worked out of."""
        return self.annotate(micros_until=MicrosUntil("at"))


class Event(models.Model):
    """One thing that happened to one row, as told by the process in which it happened (peers: LR #43, #1043).

    A lease that was over before its acquisition was written is one event, of its end: ``is_whole``. Any other has an
    event of its acquisition, too.

    Not promised: completeness. A process that is killed takes the events of its last second with it.
    """

    at = models.DateTimeField(_("at"))
    what = models.CharField(_("what"), max_length=12, choices=What.choices)
    pool = KeyField(_("pool"), max_length=150)
    row = KeyField(_("resource"), max_length=MAX_ROW)
    fence = models.BigIntegerField(_("fence"), default=0)
    holder = models.CharField(_("holder"), max_length=MAX_TEXT, default="")
    actor = models.CharField(_("by"), max_length=MAX_ACTOR, default="")
    reason = SentenceField(_("reason"), default="")
    seconds = models.FloatField(_("seconds"), null=True)
    ttl = models.FloatField(_("good after each renewal for (s)"), null=True)
    host = models.CharField(_("host"), max_length=80, default="")
    pid = models.PositiveIntegerField(_("process"), default=0)
    # The default is the database's, too: processes that still run the version before write here without this column.
    is_whole = models.BooleanField(_("tells of the whole lease"), default=False, db_default=False)

    objects: ClassVar[Any] = EventQuerySet.as_manager()

    class Meta:
        verbose_name = _("event")
        verbose_name_plural = _("events")
        indexes = [
            models.Index(fields=["pool", "row", "fence"], name="resourcepool_event_of_row"),
            models.Index(fields=["pool", "what", "at", "is_whole"], name="resourcepool_event_happened"),
            models.Index(fields=["at"], name="resourcepool_event_old"),
        ]

    def __str__(self) -> str:
        return f"{self.pool} {self.row} {self.what}"

    @property
    def began_at(self) -> datetime.datetime | None:
        """When the lease began, or the check, whose end it tells of; None: it tells of no end, or does not know."""
        return None if self.seconds is None else self.at - datetime.timedelta(seconds=self.seconds)

    @property
    def age(self) -> float:
        """How many seconds ago it was when it was read, by the database's clock; only of those read ``with_age``."""
        micros: int = self.micros_until  # type: ignore[attr-defined]
        return max(0.0, -micros / 1_000_000)


class Sample(models.Model):
    """How a pool stood in one minute, and what happened in it: what the charts are drawn from."""

    pool = KeyField(_("pool"), max_length=150)
    minute = models.DateTimeField(_("minute"))
    free = models.PositiveIntegerField(_("free"), default=0)
    leased = models.PositiveIntegerField(_("leased"), default=0)
    away = models.PositiveIntegerField(_("cooling down, quarantined or out of service"), default=0)
    waiters = models.PositiveIntegerField(_("waiting"), default=0)
    oldest_wait = models.FloatField(_("longest wait (s)"), default=0.0)
    acquired = models.PositiveIntegerField(_("acquired"), default=0)
    lost = models.PositiveIntegerField(_("lost or expired"), default=0)

    class Meta:
        verbose_name = _("sample")
        verbose_name_plural = _("samples")
        constraints = [
            models.UniqueConstraint(fields=["pool", "minute"], name="resourcepool_sample_of_minute"),
        ]
        indexes = [models.Index(fields=["minute"], name="resourcepool_sample_old")]

    def __str__(self) -> str:
        return f"{self.pool} {self.minute}"


class Dashboard(Sample):
    """What the admin's index links the dashboard by; it has no table, no rows and no permissions of its own."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = verbose_name_plural = _("dashboard")

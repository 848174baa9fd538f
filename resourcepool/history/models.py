"""Events of leases and resources, and samples of pools. Rows are only added, and pruned when old."""

import datetime
from collections.abc import Collection, Iterable
from typing import Any, ClassVar, Self

from django.db import connections, models
from django.db.models import Count, Exists, OuterRef, Q

from resourcepool.db.dialect import DbLater, KeyField, MicrosUntil
from resourcepool.db.retry import retrying
from resourcepool.events.field import SentenceField, valid
from resourcepool.signals import EventKind, RowEvent, emit
from resourcepool.text import CharField
from resourcepool.translation import gettext_lazy as _

# Ends of a lease that only its holder reports.
ENDS = frozenset({EventKind.RELEASED, EventKind.HANDED_OVER, EventKind.FIXED, EventKind.QUARANTINED})

# All ends of a lease; a quarantine by an operator has no holder, and ends none.
ENDED = ENDS | {EventKind.LOST, EventKind.EXPIRED, EventKind.REVOKED}

# Events of an acquisition: its own, or one of the whole lease. The kinds are listed to use the index.
ACQUISITION = models.Q(what=EventKind.ACQUIRED) | models.Q(what__in=sorted(ENDS), is_whole=True)

MAX_TEXT = 200
MAX_ROW = 220  # the longest key: a name of 200 characters, and the number of a permit
MAX_ACTOR = 150


def storable(value: object, most: int) -> str:
    """Return ``value`` as ``valid`` text of at most ``most`` characters."""
    return valid(value)[:most]


class EventQuerySet(models.QuerySet[Any]):
    """Filters over events."""

    def of(self, row: models.Model) -> Self:
        """Return the events of this row."""
        return self.filter(pool=row._meta.label_lower, row=storable(row.pk, MAX_ROW))

    def acquisitions(self) -> Self:
        """Return one event per acquired lease: its acquisition, or that of the whole lease."""
        return self.filter(ACQUISITION)

    def since(self, seconds: float) -> Self:
        """Return the events of the last ``seconds``, by the database's clock."""
        return self.filter(at__gt=DbLater(-seconds))

    def with_age(self) -> Self:
        """Add the annotation for ``Event.age``."""
        return self.annotate(micros_until=MicrosUntil("at"))


class Event(models.Model):
    """An event of one row, written by the process in which it happened.

    A lease that ended before its acquisition was written has a single event, of its end, with ``is_whole``.

    Not promised: completeness. The last events of a killed process are lost.
    """

    at = models.DateTimeField(_("at"))
    what = CharField(_("event"), max_length=12, choices=EventKind.choices)
    pool = KeyField(_("pool"), max_length=150)
    row = KeyField(_("resource"), max_length=MAX_ROW)
    fence = models.BigIntegerField(_("fence"), default=0)
    holder = CharField(_("holder"), max_length=MAX_TEXT, default="")
    actor = CharField(_("by"), max_length=MAX_ACTOR, default="")
    reason = SentenceField(_("reason"), default="")
    seconds = models.FloatField(_("seconds"), null=True)
    ttl = models.FloatField(_("TTL (s)"), null=True)
    host = CharField(_("host"), max_length=80, default="")
    pid = models.PositiveIntegerField(_("process"), default=0)
    # With a database default, because processes of the previous version do not write this column.
    is_whole = models.BooleanField(_("covers the whole lease"), default=False, db_default=False)

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
        """When the lease or check of this event began; None: unknown, or the event is not an end."""
        return None if self.seconds is None else self.at - datetime.timedelta(seconds=self.seconds)

    @property
    def age(self) -> float:
        """Seconds between the event and its reading ``with_age``, by the database's clock."""
        micros: int = self.micros_until  # type: ignore[attr-defined]
        return max(0.0, -micros / 1_000_000)


class Sample(models.Model):
    """The state of a pool in one minute, and its events in that minute: the data of the charts."""

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
    """The dashboard's link in the admin index, without a table or permissions of its own."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = verbose_name_plural = _("dashboard")


HOUR = 3_600.0  # seconds
MAX_EVENTS = 10  # of one lease

_OVER = sorted(ENDED - {EventKind.QUARANTINED} | {EventKind.ACKNOWLEDGED})


def open_leaks(labels: Collection[str]) -> dict[str, int]:
    """Return {pool: number of open leaks}, in one query, without pools that have none."""
    names = {label.lower(): label for label in labels}
    counts = _open(names).order_by().values_list("pool").annotate(Count("row", distinct=True))
    return {names[pool]: count for pool, count in retrying(connections[counts.db], lambda: list(counts.all()))}


def select_open_leaks(model: Any, grants: Iterable[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """Return those of ``grants``, as (primary key, fence), that are open leaks."""
    by_stored_key = {(storable(pk, MAX_ROW), fence): (pk, fence) for pk, fence in grants}
    of_these = _open([model._meta.label_lower]).filter(row__in={row for row, _ in by_stored_key})
    leaked = retrying(connections[of_these.db], lambda: set(of_these.values_list("row", "fence").all()))
    return [grant for name, grant in by_stored_key.items() if name in leaked]


def leak_events(row: Any) -> list[Event]:
    """Return the reports and acknowledgements of a leak of the current lease of ``row``."""
    events = (
        Event.objects.of(row)
        .filter(fence=row.fence, what__in=(EventKind.LEAKED, EventKind.ACKNOWLEDGED))
        .order_by("pk")
    )
    return retrying(connections[events.db], lambda: list(events.all()[:MAX_EVENTS]))


def acknowledge(rows: Any, reason: str, actor: str) -> int:
    """Acknowledge the open leaks of ``rows`` in the history; returns their number. The leases do not change."""
    holders = {(pk, fence): holder for pk, fence, holder in rows.values_list("pk", "fence", "holder")}
    known = select_open_leaks(rows.model, holders)
    for pk, fence in known:
        about = {"pk": pk, "fence": fence, "holder": holders[pk, fence]}
        emit(RowEvent(EventKind.ACKNOWLEDGED, rows.model, rows.db, reason=reason, actor=actor, **about))
    return len(known)


def _open(pools: Iterable[str]) -> EventQuerySet:
    """Return the leak reports of the last hour whose leases have not ended since."""
    since = Event.objects.filter(pool=OuterRef("pool"), row=OuterRef("row"))
    # A quarantine by the holder ends the lease; only that kind has ``seconds``.
    ended = Q(what__in=_OVER) | Q(what=EventKind.QUARANTINED, seconds__isnull=False)
    over = since.filter(Q(fence__gt=OuterRef("fence")) | Q(ended, fence=OuterRef("fence")))
    reports: EventQuerySet = Event.objects.filter(what=EventKind.LEAKED, pool__in=list(pools)).since(HOUR)
    return reports.filter(~Exists(over))

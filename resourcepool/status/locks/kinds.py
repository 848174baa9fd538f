"""The kinds of locks, with their rows and tickets; since when they are held, and by whom before, from the history."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db import router
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Substr

from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.history.models import ENDED, Event
from resourcepool.locks.models import (
    NUMBER_MARK,
    AbstractPermit,
    Barrier,
    ConditionWaiter,
    Lock as LockRow,
    RWLockPermit,
    SemaphorePermit,
)
from resourcepool.signals import EventKind, is_recorded
from resourcepool.status.alarm import lock_label
from resourcepool.status.snapshots import fetch_all
from resourcepool.waiting.models import Ticket, pool_name

ALLOWED = "one of %(names)s"


class LockKind(StrEnum):
    """A kind of lock."""

    LOCK = "lock"
    SEMAPHORE = "semaphore"
    RWLOCK = "rwlock"
    CONDITION = "condition"
    BARRIER = "barrier"

    @property
    def model(self) -> Any:
        return MODELS[self]

    @property
    def has_permits(self) -> bool:
        """Whether each row of a name is a permit."""
        return issubclass(MODELS[self], AbstractPermit)

    @property
    def is_held(self) -> bool:
        """Whether it has holders; a row of a condition or a barrier is a notified waiter."""
        return self not in NOTIFYING

    def called(self, name: str) -> str:
        return lock_label(self.value, name)

    def page_key(self, name: str) -> str:
        """Return the primary key of the row whose page shows this name: its first permit, if it has permits."""
        return f"{name}{NUMBER_MARK}0" if self.has_permits else name

    def ticket_pool(self, name: str) -> str:
        """Return the ``pool`` of the tickets that wait for this name."""
        return f"{self.prefix}{name}"

    def rows(self) -> QuerySet[Any]:
        """Return its rows with their names as ``called``, without upgrade intents."""
        rows: QuerySet[Any] = self.model.objects.using(using()).annotate(called=F("name"))
        return rows.filter(name__gt="") if self is LockKind.RWLOCK else rows

    def tickets(self) -> QuerySet[Any]:
        """Return the tickets of its waiters, with the names they wait for as ``called``."""
        tickets: Any = Ticket.objects.using(using()).waiting().filter(pool__begins=self.prefix)
        annotated: QuerySet[Any] = tickets.annotate(called=Substr("pool", len(self.prefix) + 1))
        return annotated

    @property
    def prefix(self) -> str:
        """The start of the ``pool`` of its tickets."""
        return f"{pool_name(self.model)}:"


MODELS: dict[LockKind, Any] = {
    LockKind.LOCK: LockRow,
    LockKind.SEMAPHORE: SemaphorePermit,
    LockKind.RWLOCK: RWLockPermit,
    LockKind.CONDITION: ConditionWaiter,
    LockKind.BARRIER: Barrier,
}
NOTIFYING = (LockKind.CONDITION, LockKind.BARRIER)


def using() -> str:
    """Return the database of the rows; routers must use the same one for all kinds.

    It is never a replica, which lags and would show deadlocks that are already resolved.
    """
    return router.db_for_write(LockRow)


def waiting(kinds: Collection[LockKind]) -> QuerySet[Any]:
    """Return the tickets of all waiters of these kinds."""
    of_kinds = Q(pk__in=[])
    for kind in kinds:
        of_kinds |= Q(pool__begins=kind.prefix)
    tickets: QuerySet[Any] = Ticket.objects.using(using()).waiting().filter(of_kinds).order_by()
    return tickets


def kind_and_name(pool: str) -> tuple[LockKind, str]:
    """Return kind and name for the ``pool`` of a ticket."""
    kind = next(kind for kind in LockKind if pool.startswith(kind.prefix))
    return kind, pool.removeprefix(kind.prefix)


def kind_of(text: str) -> LockKind:
    try:
        return LockKind(text)
    except ValueError:
        raise BadOption("kind", text, Sentence(ALLOWED, names=", ".join(LockKind))) from None


GRANTS = sorted({EventKind.ACQUIRED, *ENDED})


@dataclass(frozen=True, slots=True)
class Before:
    """The grant of a lock before the current one.

    Attributes:
        what: its last event; "acquired": its end is not recorded.
        ago: seconds since that event.
    """

    holder: str
    what: EventKind
    ago: float


def held_for(kind: LockKind, keys: Mapping[str, int]) -> dict[str, float]:
    """Return {key: seconds since its grant} for those in the history; one query, with permits two.

    Args:
        keys: {key of a held row: its fence}; of permits, the fence is read again.
    """
    if not keys or not kind.is_held or not is_recorded(kind.model):
        return {}
    fences = keys
    if kind.has_permits:
        fences = dict(fetch_all(kind.rows().filter(pk__in=keys).values_list("pk", "fence")))
    begun = _events(kind, fences, set(fences.values())).filter(what=EventKind.ACQUIRED)
    return {event.row: event.age for event in fetch_all(begun) if event.fence == fences[event.row]}


def held_before(kind: LockKind, names: Mapping[str, tuple[int, bool]]) -> dict[str, Before]:
    """Return {name of a lock: the grant before the current or last one} for those in the history; one query.

    Args:
        names: {name: its fence, whether it is held}.
    """
    if not names or not kind.is_held or not is_recorded(kind.model):
        return {}
    # A grant and a release increase the fence; after a hand-over, or without a release, there is only the next grant.
    fences = {
        name: {fence - 2, fence - 1} if held else {fence - 1, fence} for name, (fence, held) in names.items()
    }
    events = _events(kind, fences, set().union(*fences.values())).filter(what__in=GRANTS)
    return {
        event.row: Before(event.holder, EventKind(event.what), event.age)
        for event in fetch_all(events.order_by("fence", "pk"))
        if event.fence in fences[event.row]
    }


def _events(kind: LockKind, rows: Iterable[str], fences: Iterable[int]) -> Any:
    events = Event.objects.using(router.db_for_read(Event)).with_age()
    return events.filter(pool=kind.model._meta.label_lower, row__in=list(rows), fence__in=fences)

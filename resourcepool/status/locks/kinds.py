"""The kinds of things that are known by a name, and where their rows and their waiters are."""

from collections.abc import Collection
from enum import StrEnum
from typing import Any

from django.db import router
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Substr

from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.locks.conditions.barrier import PREFIX
from resourcepool.locks.models import AbstractPermit, Notification, RWLockPermit, SemaphorePermit
from resourcepool.locks.models import Lock as LockRow
from resourcepool.status.alarm import lock_label
from resourcepool.waiting.models import Ticket, pool_name

ALLOWED = "one of %(names)s"


class LockKind(StrEnum):
    """What a name stands for."""

    LOCK = "lock"
    SEMAPHORE = "semaphore"
    RWLOCK = "rwlock"
    CONDITION = "condition"
    BARRIER = "barrier"

    @property
    def model(self) -> Any:
        """The model of its rows."""
        return MODELS[self]

    @property
    def has_permits(self) -> bool:
        """Whether a name has several rows, of which each is a permit."""
        return issubclass(MODELS[self], AbstractPermit)

    @property
    def is_held(self) -> bool:
        """Whether somebody holds it; of conditions and barriers rows tell who was notified."""
        return self.model is not Notification

    def called(self, name: str) -> str:
        """Return the name with its kind, for people."""
        return lock_label(self.value, name)

    def stored(self, name: str) -> str:
        """Return the name as rows have it."""
        return f"{PREFIX}{name}" if self is LockKind.BARRIER else name

    def ticket_pool(self, name: str) -> str:
        """Return the name of the line of its waiters."""
        return f"{self.prefix}{name}"

    def rows(self) -> QuerySet[Any]:
        """Return its rows, of all names, each with its name as ``called``; an intent to upgrade has none."""
        rows: Any = self.model.objects.using(using())
        called: Any = F("name")
        match self:
            case LockKind.RWLOCK:
                rows = rows.filter(name__gt="")
            case LockKind.CONDITION:
                rows = rows.exclude(name__begins=PREFIX)
            case LockKind.BARRIER:
                rows, called = rows.filter(name__begins=PREFIX), Substr("name", len(PREFIX) + 1)
        found: QuerySet[Any] = rows.annotate(called=called)
        return found

    def tickets(self) -> QuerySet[Any]:
        """Return the tickets of its waiters, each with the name it waits for as ``called``."""
        tickets: Any = Ticket.objects.using(using()).waiting().filter(pool__begins=self.prefix)
        if self is LockKind.CONDITION:
            tickets = tickets.exclude(pool__begins=LockKind.BARRIER.prefix)
        found: QuerySet[Any] = tickets.annotate(called=Substr("pool", len(self.prefix) + 1))
        return found

    @property
    def prefix(self) -> str:
        """What the names of its lines begin with."""
        return f"{pool_name(self.model)}:{self.stored('')}"


MODELS: dict[LockKind, Any] = {
    LockKind.LOCK: LockRow,
    LockKind.SEMAPHORE: SemaphorePermit,
    LockKind.RWLOCK: RWLockPermit,
    LockKind.CONDITION: Notification,
    LockKind.BARRIER: Notification,
}


def using() -> str:
    """Return the database of their rows: the same for all kinds, as a project's routers must say.

    Not a replica, from which other readings may come: it is behind, and would show deadlocks that are over.
    """
    return router.db_for_write(LockRow)


def waiting(kinds: Collection[LockKind]) -> QuerySet[Any]:
    """Return the tickets of all waiters for these kinds."""
    of_kinds = Q(pk__in=[])
    for kind in kinds:
        of_kinds |= Q(pool__begins=kind.prefix)
    found: QuerySet[Any] = Ticket.objects.using(using()).waiting().filter(of_kinds).order_by()
    return found


def kind_and_name(line: str) -> tuple[LockKind, str]:
    """Return what the line of this name is for."""
    kinds = sorted(LockKind, key=lambda kind: -len(kind.prefix))  # a barrier's is a condition's, and more
    kind = next(kind for kind in kinds if line.startswith(kind.prefix))
    return kind, line.removeprefix(kind.prefix)


def kind_of(text: str) -> LockKind:
    """Return the kind of this name; raises BadOption."""
    try:
        return LockKind(text)
    except ValueError:
        raise BadOption("kind", text, Sentence(ALLOWED, names=", ".join(LockKind))) from None

"""Creates, reads and changes rows of leased models, and lets time pass for them."""

import contextlib
import itertools
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from django.apps import apps
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db.dialect import DbLater, DbNow, MicrosUntil
from resourcepool.db.dialect.statement import ANY_ROW, Where
from resourcepool.elections.models import Election as ElectionRow
from resourcepool.leases import verbs
from resourcepool.leases.lease import Lease
from resourcepool.leases.terms import Terms
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import (
    AbstractLease,
    AbstractResource,
    Barrier,
    Bucket,
    ConditionWaiter,
    Job,
    Proxy,
    QueueGroup,
    RWLockPermit,
    SemaphorePermit,
    Server,
    Stream,
    Subscription,
    Task,
    Ticket,
    Timer,
    TimerNode,
)
from resourcepool.signals import is_recorded
from resourcepool.waiting import release
from tests import running
from tests.app.models import Bare, Device, Poll
from tests.eventually import eventually

Model = type[AbstractLease]

_numbers = itertools.count(1)

# A factory per leased model. Contract tests run on all of them, so add new leased models here.
_FIELDS: dict[Model, Callable[[int], dict[str, Any]]] = {
    Bare: lambda number: {"label": f"bare {number}"},
    Device: lambda number: {"id": uuid.uuid4(), "name": f"device {number}"},
    Poll: lambda number: {"name": f"poll {number}"},
    Proxy: lambda number: {"host": f"proxy{number}.example", "port": 3128},
    Job: lambda number: {"name": f"job {number}"},
    ElectionRow: lambda number: {"name": f"election {number}"},
    Subscription: lambda number: {"channel_id": "of no account", "name": f"subscription {number}"},
    Stream: lambda number: {"name": f"stream {number}"},
    Task: lambda number: {"stream_id": "of no account", "key": f"task {number}", "type": "note"},
    Timer: lambda number: {"topic_id": "of no account", "name": f"timer {number}", "due_at": DbNow()},
    TimerNode: lambda number: {"name": f"node {number}"},
    Ticket: lambda number: {"pool": "testapp.nothing", "asked_at": DbNow()},
    Bucket: lambda number: {"dispenser_id": "of no account", "name": f"bucket {number}"},
    LockRow: lambda number: {"name": f"lock {number}"},
    SemaphorePermit: lambda number: {"name": "licence", "key": f"licence#{number}"},
    RWLockPermit: lambda number: {"name": "catalogue", "key": f"catalogue#{number}"},
    ConditionWaiter: lambda number: {"name": "orders", "key": f"orders#{number}"},
    Barrier: lambda number: {"name": "import", "key": f"import#{number}"},
    Server: lambda number: {"queue_group": _some_queue_group(), "ttl": 60, "registered_at": DbNow()},
}


def _some_queue_group() -> QueueGroup:
    return QueueGroup.objects.get_or_create(name="of no account")[0]


def leased_models() -> list[Model]:
    """Return every leased model that has a table."""
    return [model for model in apps.get_models() if issubclass(model, AbstractLease) and model._meta.managed]


def new(model: Model, **fields: Any) -> Any:
    """Create one row with ``fields``; default: free, with a small fence."""
    row = model._base_manager.create(**{**_FIELDS[model](next(_numbers)), **fields})
    if "fence" not in fields:
        change(row, fence=0)
        row.fence = 0
    return row


def several(model: Model, count: int, **fields: Any) -> list[Any]:
    return [new(model, **fields) for _ in range(count)]


def columns(row: Any) -> dict[str, Any]:
    """Return all columns of the row in the database."""
    return dict(type(row)._base_manager.filter(pk=row.pk).values().get())


def busy_for(row: Any) -> float:
    """Return the seconds until the row is free, by the database's clock; negative if it is free."""
    rows = type(row)._base_manager.filter(pk=row.pk)
    micros = rows.values_list(MicrosUntil("busy_before"), flat=True).get()
    return round(micros / 1_000_000, 3)  # SQLite's clock counts milliseconds


def lasts(row: Any, seconds: float) -> bool:
    """Whether it was made busy for this long during this test, however slow the machine was."""
    return seconds - 1 - running.seconds() < busy_for(row) <= seconds


def change(row: Any, **fields: Any) -> None:
    assert type(row)._base_manager.filter(pk=row.pk).update(**fields) == 1


def expire(row: Any) -> None:
    """Let the lease, cool-down or quarantine of this row expire."""
    change(row, busy_before=DbLater(-1))


def wanted(holder: str = "me", ttl: float = 60, **more: Any) -> Terms:
    return Terms(ttl=ttl, holder=holder, **more)


def claim(
    row: Any, holder: str = "me", ttl: float = 60, where: Where = ANY_ROW, **more: Any
) -> verbs.Grant | None:
    return verbs.claim(connection, type(row), row.pk, wanted(holder, ttl, **more), where)


def granted(row: Any, holder: str = "me", ttl: float = 60, **more: Any) -> verbs.Grant:
    """Claim the row, which must be free; a late renewal may lock it briefly."""
    return eventually(lambda: claim(row, holder, ttl, **more))


def steal(row: Any, holder: str = "thief") -> verbs.Grant:
    """Let the lease expire and another holder claim the row; repeat if a late renewal came between."""
    rows = type(row)._base_manager.filter(pk=row.pk, **row.claimable_when)
    assert rows.exists(), (
        f"{row} cannot be claimed: it needs {row.claimable_when}"
    )  # otherwise the loop below would go on

    def take() -> verbs.Grant | None:
        expire(row)
        return claim(row, holder)

    return eventually(take)


class HandedOnLease(Lease):
    """A lease whose row goes to the next waiter."""

    _next_in_line = release


def hold(row: Any, *, ttl: float = 60, holder: str = "me", **terms: Any) -> Lease:
    """Claim the row; return the lease."""
    handle = HandedOnLease if isinstance(row, AbstractResource) else Lease
    asked = Terms(ttl=ttl, holder=holder, is_recorded=is_recorded(type(row)), **terms)
    lease = handle(type(row), "default", granted(row, holder, ttl), asked)
    lease._is_delivered = True
    return lease


def now(on: BaseDatabaseWrapper = connection) -> Any:
    """Return the database's clock."""
    row = new(Bare)
    moment = Bare.objects.using(on.alias).filter(pk=row.pk).values_list(DbNow(), flat=True).get()
    row.delete()
    return moment


@contextlib.contextmanager
def audited(model: Model) -> Iterator[None]:
    """Give the table a trigger that inserts into a table with numbers of its own."""
    table = connection.ops.quote_name(model._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE audit (number integer AUTO_INCREMENT PRIMARY KEY, was integer)")
        cursor.execute(
            f"CREATE TRIGGER audited AFTER UPDATE ON {table} FOR EACH ROW INSERT INTO audit (was) VALUES (1)"
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER audited")
            cursor.execute("DROP TABLE audit")

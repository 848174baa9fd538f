"""Locks and channels of the screenshots: holders, waiters, a deadlock, a barrier, a lagging reader."""

from typing import Any

from resourcepool.db.dialect import DbLater
from resourcepool.locks import Channel
from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import RWLockPermit, SemaphorePermit, Subscription
from resourcepool.signals import EventKind
from tests.admin.conftest import event
from tests.status.locks.conftest import KINDS, held_by, permits, stands, waits

# One process each; a later request of the same process has "c0ffee.9", see ``waits``.
A, B, C = (f"web-{n}/{pid}/MainThread/{n}{n}c0ffee.{n}@1" for n, pid in ((1, 4711), (2, 902), (3, 88)))
# Other threads of these processes.
A2, B2, B3, B4, C2, C3, C4 = (
    holder.replace("MainThread", f"worker-{n}").replace("@1", f"@{n}")
    for holder, n in ((A, 2), (B, 2), (B, 3), (B, 4), (C, 2), (C, 3), (C, 4))
)
D = "batch-1/3120/nightly/44c0ffee.7@5"


def fill() -> None:
    """Create the rows."""
    locks()
    semaphores()
    conditions()
    channels()


def locks() -> None:
    for name, holder in (("orders", A), ("stock", B), ("nightly-report", D), ("prices", "")):
        LockRow.objects.create(name=name, fence=7, **held_by(holder))
    for name, holder, waited in (
        ("stock", A, 912),
        ("orders", B, 640),
        ("orders", C, 45),
        ("nightly-report", C2, 3),
    ):
        waits("lock", name, holder, waited=waited)
    row = LockRow.objects.get(pk="orders")
    event(row, EventKind.ACQUIRED, fence=7, holder=A)
    event(
        row,
        EventKind.REVOKED,
        fence=5,
        holder=C,
        actor="maria",
        reason="web-3 hung since the deploy",
        seconds=2_640.0,
    )


def semaphores() -> None:
    permits("semaphore", "licence", [C, C, D, "", "", ""], out=3)
    waits("semaphore", "licence", B2, count=2, waited=130)
    permits("semaphore", "uploads", ["", "", "", ""])
    permits("semaphore", "fax", [A, B, ""], out=2)
    permits("semaphore", "telex", ["", ""], out=2)
    event(
        SemaphorePermit.objects.get(pk="licence#0"),
        EventKind.RESIZED,
        holder="",
        actor="maria",
        reason="5 to 3 permits: two sold",
    )
    permits("rwlock", "catalogue", [D] * 10)
    permits("rwlock", "rates", [A, C, *[""] * 8])
    for holder, waited in ((C3, 70), (B3, 22)):
        waits("rwlock", "catalogue", holder, waited=waited)
    RWLockPermit.objects.update(fence=41)


def conditions() -> None:
    stands("import done", D)
    for holder in (A2, B4):
        waits("barrier", "import done", holder, waited=300)
    waits("condition", "not-empty", C4, waited=12)
    KINDS["condition"].objects.create(key="not-empty#5", name="not-empty", fence=1, **held_by(B))


def channels() -> None:
    for name, count in (("config", 4), ("invoices", 9)):
        for number in range(1, count + 1):
            Channel(name).publish({"key": f"{name}-{number}", "value": number * 10})
    MessageRow.objects.filter(channel_id="config").update(published_at=DbLater(-40))
    MessageRow.objects.filter(channel_id="invoices").update(published_at=DbLater(-3_000))
    for name, channel, cursor, holder in (
        ("audit", "invoices", 2, ""),
        ("mails", "invoices", 9, A),
        ("", "config", 4, C),
    ):
        reader: dict[str, Any] = held_by(holder)
        Subscription.objects.create(
            name=name or "c0ffee",
            channel=ChannelRow.objects.get(pk=channel),
            cursor=cursor,
            is_durable=bool(name),
            **reader,
        )

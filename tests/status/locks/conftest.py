"""Makes locks, holders and waiters as rows."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import Model

from resourcepool.db.dialect import DbLater
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import Barrier, ConditionWaiter, RWLockPermit, SemaphorePermit, Ticket

Rows = Callable[..., Any]
A, B, C = (f"web-1/4711/worker-{number}/00c0ffee.{number}@{number}" for number in (1, 2, 3))
KINDS: dict[str, Any] = {
    "semaphore": SemaphorePermit,
    "rwlock": RWLockPermit,
    "condition": ConditionWaiter,
    "barrier": Barrier,
}


def lock(name: str, holder: str = "", fence: int = 7) -> Any:
    return LockRow.objects.create(name=name, fence=fence, **held_by(holder))


def permits(kind: str, name: str, holders: list[str], *, out: int = 0) -> None:
    """Make a row for each holder, "" for a free one; the last ``out`` are not in service."""
    for number, holder in enumerate(holders):
        fields: dict[str, Any] = {
            "key": f"{name}#{number}",
            "name": name,
            "fence": number + 1,
            **held_by(holder),
        }
        if kind not in ("condition", "barrier"):
            fields["in_service"] = number < len(holders) - out
        KINDS[kind].objects.create(**fields)


def stands(name: str, holder: str) -> None:
    """Put up a barrier."""
    fields = {**held_by(holder), "busy_before": DbLater(3_000_000_000)}
    Barrier.objects.create(key=f"{name}#0", name=name, fence=1, **fields)


def held_by(holder: str) -> dict[str, Any]:
    return {"holder": holder, "busy_before": DbLater(600)} if holder else {}


def later(holder: str) -> str:
    """Return the name of another request of the same thread."""
    return holder.replace("c0ffee.", "c0ffee.9")


def waits(kind: str, name: str, holder: str, *, waited: float = 40, count: int = 1, **more: Any) -> Any:
    """Let the thread of ``holder`` wait with another request."""
    asked_at = DbLater(-waited - 0.1)  # SQLite rounds to milliseconds
    model: type[Model] = {"lock": LockRow, **KINDS}[kind]
    fields = {"selector": name, "count": count, "holder": later(holder), "asked_at": asked_at, **more}
    return Ticket.objects.create(pool=f"{model._meta.label_lower}:{name}", busy_before=DbLater(600), **fields)


@pytest.fixture
def crowd() -> None:
    """Two of each kind: one that is held and waited for, one that is free."""
    lock("busy", A)
    lock("idle")
    permits("semaphore", "busy", [A, A, B, ""])
    permits("semaphore", "idle", ["", ""])
    permits("rwlock", "catalogue", [B, C, "", ""])
    waits("lock", "busy", B, waited=40)
    waits("lock", "busy", C, waited=20)
    waits("semaphore", "busy", C, count=2, waited=30)
    waits("condition", "orders", A, waited=10)

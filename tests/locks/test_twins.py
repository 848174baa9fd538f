"""Whatever waits for the database, or for anybody, can be awaited as well, with the same arguments."""

import asyncio
import inspect
from typing import Any

import pytest

from resourcepool.locks import (
    Barrier,
    Channel,
    Condition,
    Hold,
    Lock,
    RWLock,
    Semaphore,
    arelease_all,
    bulk_release,
)
from resourcepool.locks.channels.position import Message
from resourcepool.locks.channels.subscriber import Subscriber
from resourcepool.locks.rwlock_sides import ReadLock, RWHold, WriteLock
from resourcepool.locks.semaphore import SemaphoreHold

KINDS = (
    *(Lock, Semaphore, RWLock, ReadLock, WriteLock, Condition, Barrier, Hold, SemaphoreHold, RWHold),
    *(Channel, Subscriber, Message, bulk_release),
)
CALLED = {"wait": "await_", "wait_for": "await_for"}  # ``await`` is a word of Python
CALLED |= {f"__{name}__": f"__a{name}__" for name in ("enter", "exit", "iter", "next")}
AT_ONCE = {"owned", "read", "write", "ensure_held"}  # without I/O
OF_MEMORY = {"fence", "holder", "is_held", "remaining", "lost", "ttl", "using", "key", "cursor"}  # properties
IN_A_TRANSACTION = {"guard"}  # Django has none under asyncio
# What waiting asks, in a thread; and what the parts ask each other.
INSIDE = {
    "claim_free",
    "handle",
    "refuse_impossible",
    "timed_out",
    *("revoke_rows", "revoke", "revoke_holders", "resize_names", "remove_barriers"),
    *("acquire_all", "begin"),
}


def members(kind: Any) -> dict[str, Any]:
    """Return what is public, by name; of a module what it defines."""
    return {
        name: value
        for name, value in inspect.getmembers(kind)
        if (name[0] != "_" or name in CALLED or name in CALLED.values())
        and (inspect.isfunction(value) or isinstance(value, property))
        and not (inspect.ismodule(kind) and value.__module__ != kind.__name__)
    }


def parameters(value: Any) -> list[Any]:
    function = value.fget if isinstance(value, property) else value
    # A predicate may be a coroutine function there; and what does nothing is another function in each place.
    return [
        (one.name, one.kind) if "Callable" in str(one.annotation) else one
        for one in inspect.signature(function).parameters.values()
    ]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_whatever_waits_has_a_twin_for_asyncio_that_takes_the_same(kind: Any) -> None:
    has = members(kind)
    twins = {name: twin for name in has if (twin := CALLED.get(name, f"a{name}")) in has}
    alone = set(has) - set(twins) - set(twins.values())
    properties = {name for name in alone if isinstance(has[name], property)}
    assert properties <= OF_MEMORY
    assert alone - properties <= AT_ONCE | IN_A_TRANSACTION | INSIDE
    for name, twin in twins.items():
        assert parameters(has[name]) == parameters(has[twin]), name
        assert inspect.iscoroutinefunction(has[twin]) or twin == "__aiter__"


async def awaited() -> None:
    seats, report, catalogue = Semaphore("seats", 3), Lock("report"), RWLock("catalogue")
    await seats.aacquire(n=2)
    assert (await seats.avalue(), await seats.aavailable(), await seats.alocked()) == (3, 1, False)
    assert [one.permits for one in await seats.aholders()] == [2]
    assert await seats.aresize(1) == 1
    async with report as mine, catalogue.read():
        assert await report.aholder() == (mine.holder, mine.fence)
        assert await report.alocked()
        assert await report.acontenders() == [mine.holder]
        assert [one.permits for one in await catalogue.aholders()] == [1]
    assert await arelease_all() == 2


@pytest.mark.django_db(transaction=True)
def test_what_is_read_and_changed_is_the_same() -> None:
    asyncio.run(awaited())

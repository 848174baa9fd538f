"""Real signals in real processes that wait: nothing of them stays, and nobody waits for the ttl of who has left."""

import asyncio
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from resourcepool.db.dialect import DbNow
from resourcepool.locks import Barrier, Channel, Condition, Lock, RWLock, Semaphore, release_all
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import (
    Barrier as BarrierRow,
    ConditionWaiter,
    RWLockPermit,
    SemaphorePermit,
    Subscription,
    Ticket,
)
from tests.eventually import eventually
from tests.spawned import Child, Spawner

TTL = 300  # seconds, longer than any test
WITH_ROWS: tuple[Any, ...] = (
    *(LockRow, SemaphorePermit, RWLockPermit, ConditionWaiter, BarrierRow, Subscription),
)


def lock() -> Lock:
    return Lock("a", ttl=TTL)


def semaphore() -> Semaphore:
    return Semaphore("a", 2, ttl=TTL)


def rwlock() -> RWLock:
    return RWLock("a", readers=2, ttl=TTL)


def wait_for_lock() -> None:
    with lock():
        pass


def collect_permits() -> None:
    semaphore().acquire(n=2)


def upgrade() -> None:
    with rwlock().read():
        rwlock().upgrade()


def wait_for_notice() -> None:
    with lock():
        Condition(lock()).wait()


def wait_at_barrier() -> None:
    Barrier("a").wait()


def read_on() -> None:
    with Channel("a").subscribe("a", from_="start", ttl=TTL) as messages:
        for message in messages:
            print("read", message.number, flush=True)


BEFORE: dict[Callable[[], object], Callable[[], object]] = {
    wait_for_lock: lambda: lock().acquire(),
    collect_permits: lambda: semaphore().acquire(),
    upgrade: lambda: rwlock().read().acquire(),
    wait_for_notice: lambda: None,
    wait_at_barrier: lambda: Barrier("a").create(),
    read_on: lambda: Channel("a").publish(1),
}


class Raised(BaseException):
    """By the handler of a signal."""


def leave(*_: object) -> None:
    sys.exit(0)


def raise_it(*_: object) -> None:
    raise Raised


def until_signal(wait: str, handler: str = "") -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if handler:
        signal.signal(signal.SIGTERM, globals()[handler])
    globals()[wait]()


async def in_asyncio(wait: str) -> None:
    if wait == "wait_for_lock":
        async with lock():
            pass
    elif wait == "collect_permits":
        await semaphore().aacquire(n=2)
    elif wait == "upgrade":
        async with rwlock().read():
            await rwlock().aupgrade()
    elif wait == "wait_for_notice":
        async with lock():
            await Condition(lock()).await_()
    elif wait == "wait_at_barrier":
        await Barrier("a").await_()
    else:
        async with await Channel("a").asubscribe("a", from_="start", ttl=TTL) as messages:
            async for message in messages:
                print("read", message.number, flush=True)


def until_cancelled(wait: str) -> None:
    """Wait in a task, which Ctrl-C cancels."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    asyncio.run(in_asyncio(wait))


def unwoken(until: str, wait: str) -> None:
    """Have another thread receive SIGINT. Its handler runs in the main thread, which that does not wake.

    So it is, too, when a signal arrives just as the main thread goes to sleep: after Python looked for one.
    """
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    globals()[until](wait)


def is_there(pid: int) -> bool:
    """Whether that process has anything, or waits for something."""
    mine = {"holder__contains": f"/{pid}/", "busy_before__gt": DbNow()}
    return any(model.objects.filter(**mine).exists() for model in (*WITH_ROWS, Ticket))


def waiting(spawn: Spawner, wait: Callable[[], object], until: Callable[..., None], *words: str) -> Child:
    """Return a process that waits."""
    BEFORE[wait]()
    child = spawn(until, *words)
    if wait is read_on:
        child.line("read 1")
    else:
        eventually(Ticket.objects.waiting().exists)
    return child


@pytest.mark.parametrize(
    ("number", "handler"),
    [(signal.SIGINT, ""), (signal.SIGTERM, "leave"), (signal.SIGTERM, "raise_it"), (signal.SIGINT, "asyncio")],
    ids=["Ctrl-C", "exit", "raise", "asyncio"],
)
@pytest.mark.parametrize("wait", BEFORE, ids=lambda wait: wait.__name__)
def test_who_ends_in_order_leaves_nothing(
    spawn: Spawner, wait: Callable[[], object], number: int, handler: str
) -> None:
    name = wait.__name__
    words = (until_cancelled, name) if handler == "asyncio" else (until_signal, name, handler)
    child = waiting(spawn, wait, *words)
    child.send(number)
    assert (child.wait() == 0) == (handler == "leave")
    assert not is_there(child.pid)
    release_all()
    assert all(one.acquire(blocking=False) for one in (lock(), semaphore(), rwlock().write()))


@pytest.mark.parametrize("until", [until_signal, until_cancelled], ids=["Ctrl-C", "asyncio"])
@pytest.mark.parametrize("wait", BEFORE, ids=lambda wait: wait.__name__)
def test_a_signal_that_does_not_wake_who_waits_ends_the_wait_soon(
    spawn: Spawner, wait: Callable[[], object], until: Callable[..., None]
) -> None:
    child = waiting(spawn, wait, unwoken, until.__name__, wait.__name__)
    time.sleep(0.3)  # until it sleeps, most probably; if not yet, this test sees less, and passes
    child.send(signal.SIGINT)
    assert child.wait(20) != 0
    assert not is_there(child.pid)


def test_a_message_in_the_hand_of_who_was_interrupted_is_read_again(spawn: Spawner) -> None:
    Channel("a").publish(1)
    child = spawn(until_signal, "read_on", "leave")
    child.line("read 1")
    child.send(signal.SIGTERM)
    child.wait()
    Channel("a").publish(2)
    with Channel("a").subscribe("a", timeout=0, ttl=TTL) as messages:
        numbers = [message.number for message in messages]
    assert numbers in ([1, 2], [2]), "the first one is done if the second was asked for"

"""What is refused, or late, is named, with its value and what is allowed, before anything is done."""

import asyncio
import copy
import math
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.core.exceptions import SynchronousOnlyOperation

from resourcepool.elections import Election
from resourcepool.exceptions import AcquireTimeout, BadOption, DatabaseUnavailable
from resourcepool.locks import Barrier, Channel, Condition, Lock, RWLock, Semaphore
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import Proxy, Subscription
from tests.app.rows import new
from tests.eventually import elsewhere

COPIES: dict[str, Callable[[Any], Any]] = {"pickle": pickle.dumps, "copy": copy.copy, "deepcopy": copy.deepcopy}
HELD: dict[str, Callable[[], Any]] = {
    "lease of a resource": lambda: new(Proxy) and Proxy.pool.acquire(),
    "lease of a lock": lambda: Lock("report").acquire().leases[0],  # type: ignore[union-attr]
    "hold": lambda: Semaphore("seats").acquire(),
    "term": lambda: Election("report").campaign(),
    "subscriber": lambda: Channel("news").subscribe(),
    "lock": lambda: Lock("report"),
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("make", HELD.values(), ids=HELD)
def test_what_cannot_be_copied_says_what_to_do_instead(
    make: Callable[[], Any], copied: Callable[[Any], Any]
) -> None:
    held = make()
    what_to_do = (
        r"belongs to this process.*: (send|pass on)|cannot be pickled or copied: (send|subscribe|create)"
    )
    with pytest.raises(TypeError, match=what_to_do):
        copied(held)


async def coroutine() -> bool:
    return False


WAITS: dict[str, Callable[[Any], Any]] = {
    "lock": lambda timeout: Lock("a", timeout=timeout),
    "acquire": lambda timeout: Lock("a").acquire(timeout=timeout),
    "permits": lambda timeout: Semaphore("a", 3).acquire(n=2, timeout=timeout),
    "reader": lambda timeout: RWLock("a").read().acquire(timeout=timeout),
    "barrier": lambda timeout: Barrier("a").wait(timeout),
    "subscribe": lambda timeout: Channel("a").subscribe(timeout=timeout),
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_how_long_to_wait_is_refused_with_how_to_say_for_ever(wait: Callable[[Any], Any]) -> None:
    allowed = "it must be seconds or a timedelta, from 0 s to 1 day (86,400 s), or -1 for no limit"
    for timeout in (math.nan, math.inf, -2, "5", True):
        with pytest.raises(BadOption) as refused:
            wait(timeout)
        assert str(refused.value).endswith(f"timeout={timeout!r} is not allowed: {allowed}")
    assert not LockRow.objects.exists()
    assert not Subscription.objects.exists()


@pytest.mark.parametrize("stop", [None, 1, coroutine])
def test_a_stop_that_is_no_plain_function_is_refused_before_it_begins(stop: Any) -> None:
    with pytest.raises(BadOption, match=r"stop=.* a plain function"):
        Channel("a").subscribe("name", stop=stop)
    with pytest.raises(BadOption, match=r"stop=.* a plain function"):
        asyncio.run(Channel("a").asubscribe("name", stop=stop))
    assert not Subscription.objects.exists()


@pytest.mark.parametrize("on_lost", ["print", coroutine])
def test_whom_to_tell_of_a_loss_is_a_plain_function_for_nobody_would_await_it(on_lost: Any) -> None:
    for take in (partial(Lock, "a"), partial(RWLock, "a"), partial(Election, "a"), Proxy.pool.acquire):
        with pytest.raises(BadOption, match=r"on_lost=.* a plain function that takes the (hold|term|lease)"):
            take(on_lost=on_lost)
    with pytest.raises(BadOption, match=r"on_elected=.* a plain function"):
        Election("a", on_elected=on_lost)
    with pytest.raises(BadOption, match=r"stop=.* a plain function"):
        Election("a").campaign(stop=on_lost)


def test_a_coroutine_is_not_taken_for_a_predicate_that_is_true() -> None:
    with Condition(name="a") as held:
        for predicate in (coroutine, None, True):
            with pytest.raises(
                BadOption, match=r"predicate=.* a plain function; await_for also accepts a coroutine"
            ):
                Condition(name="a").wait_for(predicate, 0)  # type: ignore[arg-type]
        assert held.is_held


def test_asyncio_may_ask_the_database_in_the_predicate() -> None:
    answers = [False, True]

    async def is_there() -> bool:
        return await LockRow.objects.filter(pk="a").aexists() and answers.pop(0)

    async def main() -> tuple[Any, ...]:
        condition = Condition(name="a")
        async with condition:
            seen = await condition.await_for(is_there, 0), await condition.await_for(is_there, 30)
            with pytest.raises(BadOption, match="a function or a coroutine function"):
                await condition.await_for(None)  # type: ignore[arg-type]
            return *seen, await condition.await_for(lambda: 7)

    assert asyncio.run(main()) == (False, True, 7)


@pytest.mark.parametrize("one", [Lock("a"), Semaphore("a"), RWLock("a", readers=2).write()], ids=repr)
def test_an_outage_at_the_last_moment_is_still_a_timeout(one: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> None:
        raise DatabaseUnavailable("away")

    one.acquire()
    for kind, asks in ((Lock, "holder"), (Semaphore, "_count"), (RWLock, "holders")):
        monkeypatch.setattr(kind, asks, away)
    assert elsewhere(lambda: one.acquire(timeout=0.05)) is None


def test_a_timeout_of_a_writer_tells_three_who_read_and_that_there_are_others() -> None:
    lock = RWLock("catalogue", readers=5, timeout=0.05)
    for _ in range(4):
        elsewhere(lock.read().acquire)
    with pytest.raises(AcquireTimeout, match=r"within 0\.05 s: held by [^,]+, [^,]+, [^,]+ and others$"):
        lock.write().__enter__()


def test_each_thing_shows_its_name() -> None:
    channel = Channel("config")
    shown = (Barrier("done"), channel, channel.subscribe(), channel.subscribe("indexer"))
    assert [repr(one) for one in shown] == [
        "<Barrier 'done'>",
        "<Channel 'config'>",
        "<Subscriber of 'config'>",
        "<Subscriber of 'config' as 'indexer'>",
    ]


def test_a_call_without_await_in_a_task_is_refused_before_anything_changes() -> None:
    async def work() -> None:
        lock = Lock("a")
        await lock.aacquire()
        for call in (lock.release, Lock("b").acquire, RWLock("c").write().acquire, Semaphore("d", 2).acquire):
            with pytest.raises(SynchronousOnlyOperation):
                call()
        assert lock.owned()
        await lock.arelease()
        assert not await lock.alocked()

    asyncio.run(work())

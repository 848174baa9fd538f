"""A condition: who waits under a lock is woken by who holds it, and has the lock again, whatever happens."""

import asyncio
import threading
from typing import Any

import pytest
from django.db import transaction

from resourcepool.exceptions import BadOption, ClaimInTransaction, DatabaseUnavailable, LeaseLost, NotHeld
from resourcepool.leases.keeper import keeper
from resourcepool.locks import Condition, Hold, Lock, release_all
from resourcepool.locks.models import Lock as LockRow
from resourcepool.locks.notifications import NotificationLease
from resourcepool.models import Ticket
from resourcepool.waiting import tickets
from tests.app.rows import expire, steal
from tests.eventually import InBackground, eventually
from tests.interruptions import Interruption, at_each_line, end
from tests.locks.orders import NAME, condition, in_line, notify, waiting


class TestWithoutTheLock:
    def test_it_can_neither_wait_nor_notify(self) -> None:
        with pytest.raises(NotHeld, match="cannot wait"):
            condition().wait()
        assert not Ticket.objects.exists()
        (thread,) = waiting()
        for do in (condition().notify, condition().notify_all):
            with pytest.raises(NotHeld, match="cannot notify"):
                do()
        assert in_line() == 1
        notify()
        thread.result()

    def test_who_has_lost_it_is_without(self) -> None:
        held: Any = condition().acquire()
        steal(LockRow.objects.get(pk=NAME))
        with pytest.raises(LeaseLost):
            held.leases[0].renew()
        for do in (condition().notify, condition().wait):
            with pytest.raises(LeaseLost):
                do()
        assert not Ticket.objects.exists()

    def test_who_loses_it_without_knowing_does_not_wait(self) -> None:
        condition().acquire()
        steal(LockRow.objects.get(pk=NAME))
        with pytest.raises(LeaseLost):
            condition().wait()
        eventually(lambda: in_line() == 0)
        with pytest.raises(LeaseLost):
            condition().release()


class TestTheLock:
    def test_it_is_free_meanwhile_and_held_afterwards_as_often_as_before(self) -> None:
        counts = []

        def wait_deep() -> None:
            with condition() as held, condition(), condition():
                assert held.count == 3
                condition().wait()
                counts.append((held.count, held.is_held, condition().lock.owned()))
            counts.append((held.count, held.is_held, condition().lock.owned()))

        thread = InBackground(wait_deep)
        eventually(lambda: in_line() == 1)
        notify()
        thread.result()
        assert counts == [(3, True, True), (0, False, False)]
        assert not condition().lock.locked()

    def test_a_timeout_of_its_own_is_no_limit_for_taking_it_back(self) -> None:
        impatient = Condition(Lock(NAME, timeout=0))

        def wait_impatiently() -> bool:
            with impatient:
                return impatient.wait()

        thread = InBackground(wait_impatiently)
        eventually(lambda: in_line() == 1)
        with condition():
            condition().notify()
            eventually(Ticket.objects.filter(pool=f"resourcepool.lock:{NAME}").waiting().exists)
        assert thread.result() is True

    def test_in_a_transaction_nobody_waits(self) -> None:
        with condition() as held:
            with transaction.atomic(), pytest.raises(ClaimInTransaction):
                condition().wait()
            assert held.is_held

    def test_it_is_kept_if_there_is_no_place_in_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def away(*_: Any) -> None:
            raise DatabaseUnavailable("away")

        with condition() as held:
            monkeypatch.setattr(tickets, "take", away)
            with pytest.raises(DatabaseUnavailable):
                condition().wait()
            assert held.is_held

    def test_an_error_that_interrupts_the_wait_finds_it_taken_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        with condition() as held:
            monkeypatch.setattr("resourcepool.waiting.poll.Poller.wait", interrupted)
            with pytest.raises(KeyboardInterrupt):
                condition().wait()
            monkeypatch.undo()
            assert held.is_held
            eventually(lambda: in_line() == 0)

    def test_a_signal_at_any_moment_of_a_wait_finds_it_taken_again(self) -> None:
        lock, held = Lock(NAME, ttl=60), list[Hold]()

        def prepare() -> None:
            release_all()
            held[:] = [lock.__enter__()]

        def look() -> None:
            try:
                Condition(lock).wait(0)
            finally:
                end()

        waits = ["/locks/condition.py", "/db/sync_async.py"]
        moments = (["_run_wait"], waits), (["_take"], ["/locks/lock.py", "/locks/lockable.py"])
        for since, files in moments:
            for place in at_each_line(look, prepare, since=since, files=files):
                assert lock.owned(), place
                assert held[0].is_held, place
                assert (held[0].fence, held[0].count) == (LockRow.objects.get(pk=NAME).fence, 1), place
        release_all()

    def test_a_second_signal_ends_it_though_somebody_else_has_the_lock(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*_: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(Lock, "_acquire_again", interrupted)
        with pytest.raises(KeyboardInterrupt), condition():
            condition().wait(0)
        assert not Lock(NAME).owned()
        assert keeper.leases() == []

    @pytest.mark.parametrize("is_removed", [False, True])
    @pytest.mark.parametrize("raised", [Interruption, TimeoutError])
    def test_a_signal_while_its_notification_is_removed_notifies_the_next_one(
        self, monkeypatch: pytest.MonkeyPatch, raised: type[BaseException], is_removed: bool
    ) -> None:
        send = NotificationLease._send_release

        def interrupted(self: NotificationLease, connection: Any) -> bool:
            if is_removed:
                send(self, connection)
            monkeypatch.undo()
            raise raised

        def wait() -> None:
            with condition(), pytest.raises(raised):
                condition().wait()

        first = InBackground(wait)
        eventually(lambda: in_line() == 1)
        (second,) = waiting()
        monkeypatch.setattr(NotificationLease, "_send_release", interrupted)
        notify()
        first.result()
        assert second.result() is True

    def test_without_an_answer_to_the_release_the_wait_goes_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        given_back: list[Hold] = []
        release = NotificationLease.release

        def unanswered(self: Any) -> None:
            if self.model is not LockRow or given_back:
                release(self)
                return
            given_back.append(self)
            self._stop_renewing()
            raise DatabaseUnavailable("away")

        monkeypatch.setattr("resourcepool.leases.lease.Lease.release", unanswered)
        (thread,) = waiting()
        expire(LockRow.objects.get(pk=NAME))
        notify()
        assert thread.result() is True


class TestAsyncio:
    def test_tasks_wait_and_notify(self) -> None:
        async def work() -> list[Any]:
            async def wait_for_it() -> bool:
                async with condition() as held:
                    result = await condition().await_(30)
                    assert held.is_held
                    return result

            tasks = [asyncio.create_task(wait_for_it()) for _ in range(2)]
            while await in_line_now() < 2:
                await asyncio.sleep(0.005)
            with pytest.raises(NotHeld, match="task"):
                await condition().anotify()
            with pytest.raises(NotHeld, match="task"):
                await condition().await_()
            async with condition():
                assert await condition().anotify_all() == 2
                assert await condition().anotify() == 0
            done = [await task for task in tasks]
            async with condition():
                done.append(await condition().await_(0.05))
                done.append(await condition().await_for(lambda: 7))
                done.append(await condition().await_for(lambda: 0, timeout=0.05))
            return done

        assert asyncio.run(work()) == [True, True, False, 7, 0]


async def in_line_now() -> int:
    from asgiref.sync import sync_to_async

    return await sync_to_async(in_line)()


class TestBadInput:
    def test_it_needs_a_lock_or_a_name(self) -> None:
        assert Condition(name="a").lock.name == "a"
        assert Condition(Lock("a"), "b").name == "b"
        with pytest.raises(BadOption, match="lock="):
            Condition()

    @pytest.mark.parametrize("lock", ["orders", threading.Lock(), 5])
    def test_only_a_lock_of_ours_will_do(self, lock: Any) -> None:
        with pytest.raises(BadOption, match=r"lock=.*Condition\(name="):
            Condition(lock)

    @pytest.mark.parametrize("name", ["", "x" * 201, "two\nlines", 5])
    def test_a_bad_name_is_refused(self, name: Any) -> None:
        with pytest.raises(BadOption, match="name="):
            Condition(Lock("a"), name)

    @pytest.mark.parametrize("number", [-1, 1.5, True, "1", 2**40])
    def test_a_bad_number_is_refused(self, number: Any) -> None:
        with condition(), pytest.raises(BadOption, match="n="):
            condition().notify(number)

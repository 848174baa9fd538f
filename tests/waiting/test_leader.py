"""One of the waiting threads looks for all waiters of its process; when it leaves, the next one takes over."""

import asyncio
import threading
from typing import Any

import pytest

from resourcepool import hints
from resourcepool.db.sync_async import run_sync
from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting import acquire
from resourcepool.waiting.poll import poller_on
from tests.app.rows import columns, expire, hold, new, several
from tests.concurrency.tickets import in_line
from tests.eventually import InBackground, eventually
from tests.waiting.looks import BACKGROUND, HERE, Looks, request, waiting
from tests.waiting.threads import given, ticket


class TestASingleWaiter:
    def test_looks_in_its_own_thread_and_wakes_no_other(self, looks: Looks) -> None:
        held = hold(new(Proxy))
        looks.do = lambda: setattr(looks, "do", held.release)
        lease: Any = Proxy.pool.acquire(timeout=20)
        assert lease.fence == 2
        assert looks.by == [HERE] * 2
        assert not poller_on("default").turns.waiters
        lease.renew()

    @pytest.mark.usefixtures("distant_look")
    def test_is_woken_by_a_release_in_its_process(self, looks: Looks) -> None:
        held = hold(new(Proxy))
        one = waiting()
        held.release()
        assert one.result().fence == 2
        assert looks.by == [one.name]

    @pytest.mark.usefixtures("distant_look")
    def test_looks_once_more_after_a_wakeup_without_a_reason(self, looks: Looks) -> None:
        held = hold(new(Proxy))
        one = waiting()
        hints.wake_all()
        eventually(lambda: looks.by)
        assert in_line() == ["me"]
        held.release()
        assert one.result().fence == 2

    @pytest.mark.usefixtures("distant_look")
    def test_for_several_rows_looks_too(self, looks: Looks) -> None:
        held = [hold(row) for row in several(Proxy, 2)]
        one = InBackground(lambda: Proxy.pool.acquire_many(2, timeout=20, holder="me"))
        eventually(lambda: poller_on("default").turns.waiters)
        for lease in held:
            lease.release()
        assert len(one.result()) == 2
        assert set(looks.by) == {one.name}

    @pytest.mark.usefixtures("distant_look")
    def test_that_times_out_before_its_first_look_takes_its_ticket_away(self) -> None:
        hold(new(Proxy))
        with pytest.raises(AcquireTimeout):
            Proxy.pool.acquire(timeout=0.05)
        assert not Ticket.objects.exists()

    @pytest.mark.usefixtures("distant_look")
    def test_that_is_stopped_takes_its_ticket_away(self) -> None:
        hold(new(Proxy))
        stop = threading.Event()
        one = InBackground(lambda: run_sync(acquire.acquire, Proxy.pool, request(), stop.is_set))
        eventually(in_line)
        stop.set()
        with pytest.raises(AcquireTimeout):
            one.result()
        assert not Ticket.objects.exists()


class TestSeveralWaiters:
    @pytest.mark.usefixtures("distant_look")
    def test_the_first_looks_for_the_others(self, looks: Looks) -> None:
        first_row, second_row = (hold(row) for row in several(Proxy, 2))
        first, second = waiting(holder="first", priority=5), waiting(holder="second")
        first_row.release()
        assert second.result().fence == 2
        assert set(looks.by) == {first.name}
        second_row.release()
        assert first.result().fence == 2

    @pytest.mark.usefixtures("distant_look")
    def test_the_next_takes_over_when_the_first_is_served(self, looks: Looks) -> None:
        held = hold(new(Proxy))
        first, second = waiting(holder="first"), waiting(holder="second")
        held.release()
        first.result().release()
        assert second.result().fence == 3
        assert looks.by[0] == first.name
        assert looks.by[-1] == second.name

    @pytest.mark.usefixtures("distant_look")
    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, LookupError])
    def test_the_next_takes_over_when_the_first_is_interrupted(
        self, looks: Looks, error: type[BaseException]
    ) -> None:
        row = new(Proxy)
        held = hold(row)
        first = InBackground(lambda: _outcome(lambda: Proxy.pool.acquire(timeout=60, priority=5)))
        eventually(lambda: poller_on("default").turns.waiters)  # a ticket alone would not make it the first
        second = waiting(holder="second")
        looks.raising(error())
        held.release()
        assert isinstance(first.result(), error)
        lease = second.result()
        lease.renew()
        # The first may have been given the row, and have passed it on.
        assert (columns(row)["fence"], columns(row)["holder"]) == (lease.fence, "second")
        assert lease.fence > 1

    @pytest.mark.usefixtures("distant_look")
    def test_a_thread_looks_for_a_task_that_came_later(self, looks: Looks) -> None:
        rows = [hold(row) for row in several(Proxy, 2)]
        thread = waiting(priority=5)
        task = InBackground(lambda: asyncio.run(Proxy.pool.aacquire(timeout=60)))
        eventually(lambda: len(in_line()) == 2)
        rows[0].release()
        assert task.result().fence == 2
        assert set(looks.by) == {thread.name}
        rows[1].release()
        assert thread.result().fence == 2

    @pytest.mark.usefixtures("distant_look")
    def test_a_background_thread_looks_for_a_task_and_for_threads_that_came_later(self, looks: Looks) -> None:
        rows = [hold(row) for row in several(Proxy, 2)]
        task = InBackground(lambda: asyncio.run(Proxy.pool.aacquire(timeout=60, priority=5)))
        eventually(lambda: poller_on("default").turns.waiters)
        thread = waiting()
        rows[0].release()
        assert thread.result().fence == 2
        rows[1].release()
        assert task.result().fence == 2
        assert set(looks.by) == {BACKGROUND}


class TestATicketLostMeanwhile:
    def test_is_replaced(self, looks: Looks) -> None:
        held, gone = hold(new(Proxy)), threading.Event()
        looks.do = lambda: (Ticket.objects.all()._raw_delete("default"), gone.set())
        one = waiting()
        assert gone.wait(20)
        eventually(lambda: in_line() == ["me"])
        held.release()
        assert one.result().fence == 2

    def test_passes_on_a_row_that_expired_before_the_look(self, looks: Looks) -> None:
        """After a pause of this process."""
        row, behind = new(Proxy), []
        held = hold(row)

        def stand_still() -> None:
            behind.append(ticket(Proxy))
            held.release()
            expire(row)
            expire(Ticket.objects.get(holder="me"))

        looks.do = stand_still
        one = waiting()
        eventually(lambda: behind and given(behind[0]) == [(row.pk, 3)])
        eventually(lambda: in_line() == ["me"])
        expire(row)
        assert one.result().fence == 4


class TestAnOutage:
    def test_does_not_end_the_wait(self, looks: Looks) -> None:
        held = hold(new(Proxy))
        looks.raising(DatabaseUnavailable("gone"))
        one = waiting()
        eventually(lambda: len(looks.by) > 1)
        held.release()
        assert one.result().fence == 2

    def test_does_not_lose_what_was_given_meanwhile(self, looks: Looks) -> None:
        held = hold(new(Proxy))
        looks.raising(DatabaseUnavailable("gone"), held.release)
        lease: Any = Proxy.pool.acquire(timeout=20)
        assert lease.fence == 2

    def test_that_is_over_is_not_reported(self, looks: Looks) -> None:
        hold(new(Proxy))
        looks.raising(DatabaseUnavailable("gone"))
        stop = threading.Event()
        one = InBackground(lambda: run_sync(acquire.acquire, Proxy.pool, request(), stop.is_set))
        eventually(lambda: len(looks.by) > 1)
        eventually(lambda: poller_on("default").db_error is None)
        stop.set()
        with pytest.raises(AcquireTimeout, match="1 match, 1 leased"):
            one.result()


class TestAnInterruption:
    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
    def test_in_a_look_removes_the_ticket(self, looks: Looks, error: type[BaseException]) -> None:
        held = hold(new(Proxy))
        looks.raising(error())
        with pytest.raises(error):
            Proxy.pool.acquire(timeout=20)
        assert not Ticket.objects.exists()
        held.release()
        assert Proxy.pool.acquire(wait=False) is not None

    def test_in_a_look_passes_its_row_on(self, looks: Looks) -> None:
        row, behind = new(Proxy), []
        held = hold(row)
        looks.raising(KeyboardInterrupt(), held.release, lambda: behind.append(ticket(Proxy)))
        with pytest.raises(KeyboardInterrupt):
            Proxy.pool.acquire(timeout=20)
        assert given(behind[0]) == [(row.pk, 3)]

    def test_after_the_row_was_delivered_releases_it(
        self, looks: Looks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row = new(Proxy)
        looks.do = hold(row).release
        turns = poller_on("default").turns
        use = turns.use

        def interrupted(waiter: Any) -> None:
            use(waiter)
            raise KeyboardInterrupt

        monkeypatch.setattr(turns, "use", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Proxy.pool.acquire(timeout=20)
        assert (columns(row)["fence"], columns(row)["holder"]) == (3, "")

    def test_by_the_callers_own_timeout_error_is_told_from_the_end_of_the_wait(self, looks: Looks) -> None:
        hold(new(Proxy))
        looks.raising(TimeoutError("the caller's own"))
        with pytest.raises(TimeoutError, match="the caller's own"):
            Proxy.pool.acquire(timeout=20)
        assert not Ticket.objects.exists()


def test_a_row_given_by_another_process_is_found_by_a_hint_without_a_ticket(looks: Looks) -> None:
    """A hint says only that something was given to this process."""
    held = hold(new(Proxy))
    one = waiting()
    held.release()
    hints.notify("default", 0, 0)
    assert one.result().fence == 2


def _outcome(do: Any) -> Any:
    try:
        return do()
    except BaseException as error:  # noqa: BLE001 (the test judges it)
        return error

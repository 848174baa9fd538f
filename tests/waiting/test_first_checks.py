"""A waiting caller makes the first checks in its own thread, on its own connection."""

import asyncio
import threading
from typing import Any

import pytest

from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting import acquire, estimates
from resourcepool.waiting import waiter as of_one
from resourcepool.waiting.ticket_wakeups import ticket_wakeups
from resourcepool.waiting.waiter import Waiter
from resourcepool.waiting.waiters import waiters
from tests.app.rows import expire, hold, new, several
from tests.concurrency.tickets import in_line
from tests.eventually import InBackground, eventually
from tests.waiting.first_checks import HERE, LONG, CheckRecorder, asleep, request, waiting
from tests.waiting.threads import given, ticket


@pytest.fixture
def _only_the_caller_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    def join(waiter: Waiter) -> None:
        raise AssertionError(f"left to the thread: {waiter}")

    monkeypatch.setattr(waiters, "join", join)


pytestmark = pytest.mark.usefixtures("forgotten_tickets")


class TestBeingServed:
    @pytest.mark.usefixtures("_only_the_caller_checks")
    def test_by_the_first_look_needs_no_other_thread(self, checks: CheckRecorder) -> None:
        held = hold(new(Proxy))
        checks.do = held.release
        lease: Any = Proxy.pool.acquire(timeout=20)
        assert (lease.pk, lease.fence) == (held.pk, 2)
        assert checks.by == [HERE]
        lease.ensure_held()
        lease.renew()
        eventually(lambda: not Ticket.objects.exists())

    @pytest.mark.usefixtures("_only_the_caller_checks")
    def test_by_a_later_look_does_not_either(self, checks: CheckRecorder) -> None:
        held = hold(new(Proxy))

        checks.do = lambda: setattr(checks, "do", held.release)
        lease: Any = Proxy.pool.acquire(timeout=20)
        assert lease.fence == 2
        assert checks.by == [HERE] * 2

    @pytest.mark.usefixtures("_only_the_caller_checks", "distant_first_check")
    def test_a_release_wakes_a_sleeping_waiter(self, checks: CheckRecorder) -> None:
        held = hold(new(Proxy))
        one = waiting()
        held.release()
        assert one.result().fence == 2
        assert len(checks.by) == 1

    @pytest.mark.usefixtures("_only_the_caller_checks", "distant_first_check")
    def test_an_unneeded_wakeup_only_costs_a_check(self, checks: CheckRecorder) -> None:
        held = hold(new(Proxy))
        one = waiting()
        ticket_wakeups.wake_all()
        eventually(lambda: checks.by)
        assert in_line() == ["me"]
        held.release()
        assert one.result().fence == 2

    def test_after_the_first_looks_is_up_to_the_thread(
        self, checks: CheckRecorder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(estimates, "FIRST_SCAN_DELAY", 0.1)
        held = hold(new(Proxy))
        one = InBackground(lambda: Proxy.pool.acquire(timeout=20, holder="me"))
        eventually(lambda: "resourcepool-waiters-default" in checks.by)
        assert not asleep()
        held.release()
        assert one.result().fence == 2
        assert one.name not in checks.by[checks.by.index("resourcepool-waiters-default") :]

    @pytest.mark.usefixtures("distant_first_check")
    def test_with_several_is_up_to_the_thread_from_the_beginning(self, checks: CheckRecorder) -> None:
        held = [hold(row) for row in several(Proxy, 2)]
        one = InBackground(lambda: Proxy.pool.acquire_many(2, timeout=20, holder="me"))
        eventually(lambda: list(ticket_wakeups._tickets.values()) == [None])
        assert not asleep()
        for lease in held:
            lease.release()
        assert len(one.result()) == 2
        assert set(checks.by) == {"resourcepool-waiters-default"}

    @pytest.mark.usefixtures("distant_first_check")
    def test_with_other_waiters_in_the_process_the_thread_serves_from_the_start(
        self, checks: CheckRecorder
    ) -> None:
        held = [hold(row) for row in several(Proxy, 2)]
        both = InBackground(lambda: Proxy.pool.acquire_many(2, timeout=60))
        eventually(lambda: waiters.has_waiters("default"))
        one = InBackground(lambda: Proxy.pool.acquire(timeout=60))
        eventually(lambda: list(ticket_wakeups._tickets.values()) == [None, None])
        for lease in held:
            lease.release()
        for lease in both.result():
            lease.release()
        assert one.result().fence == 3
        assert set(checks.by) == {"resourcepool-waiters-default"}

    @pytest.mark.usefixtures("distant_first_check")
    def test_a_release_wakes_a_task(self, checks: CheckRecorder) -> None:
        held = hold(new(Proxy))
        one = InBackground(lambda: asyncio.run(Proxy.pool.aacquire(timeout=60, holder="me")))
        eventually(lambda: list(ticket_wakeups._tickets.values()) == [None])
        held.release()
        assert one.result().fence == 2
        assert checks.by == ["resourcepool-waiters-default"]

    @pytest.mark.usefixtures("_only_the_caller_checks")
    def test_a_notice_during_the_last_of_the_looks_is_not_lost(
        self, checks: CheckRecorder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        held = hold(new(Proxy))

        def released_just_afterwards(*_: Any, **__: Any) -> float:
            held.release()
            return LONG

        monkeypatch.setattr(of_one, "pause", released_just_afterwards)
        lease: Any = Proxy.pool.acquire(timeout=60)
        assert lease.fence == 2
        assert checks.by == [HERE] * 2


class TestATicketLostMeanwhile:
    def test_is_replaced_by_the_thread(self, checks: CheckRecorder) -> None:
        held = hold(new(Proxy))
        gone = threading.Event()
        checks.do = lambda: (Ticket.objects.all()._raw_delete("default"), gone.set())
        one = InBackground(lambda: Proxy.pool.acquire(timeout=20, holder="me"))
        assert gone.wait(20)
        eventually(lambda: in_line() == ["me"])
        held.release()
        assert one.result().fence == 2
        assert checks.by.count(one.name) == 1

    def test_passes_on_a_row_that_expired_before_the_check(self, checks: CheckRecorder) -> None:
        """After a pause of this process."""
        row, behind = new(Proxy), []
        held = hold(row)

        def stand_still() -> None:
            behind.append(ticket(Proxy))
            held.release()
            expire(row)
            expire(Ticket.objects.get(holder="me"))

        checks.do = stand_still
        one = InBackground(lambda: Proxy.pool.acquire(timeout=20, holder="me"))
        eventually(lambda: behind and given(behind[0]) == [(row.pk, 3)])
        eventually(lambda: in_line() == ["me"])
        expire(row)
        assert one.result().fence == 4


class TestAnOutage:
    def test_during_the_first_checks_is_handled_by_the_thread(self, checks: CheckRecorder) -> None:
        held = hold(new(Proxy))
        checks.raising(DatabaseUnavailable("gone"))
        one = InBackground(lambda: Proxy.pool.acquire(timeout=20, holder="me"))
        eventually(lambda: "resourcepool-waiters-default" in checks.by)
        held.release()
        assert one.result().fence == 2
        assert checks.by.count(one.name) == 1

    def test_does_not_lose_what_was_given_meanwhile(self, checks: CheckRecorder) -> None:
        held = hold(new(Proxy))
        checks.raising(DatabaseUnavailable("gone"), held.release)
        lease: Any = Proxy.pool.acquire(timeout=20)
        assert lease.fence == 2

    def test_until_the_timeout_is_reported(
        self, checks: CheckRecorder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The waiters' thread has not seen the error."""
        hold(new(Proxy))
        monkeypatch.setattr(waiters, "error_on", lambda _: None)
        monkeypatch.setattr(acquire, "_outcome", lambda *_, **__: None)
        checks.raising(DatabaseUnavailable("database 'default': server has gone away"))
        with pytest.raises(AcquireTimeout, match="server has gone away"):
            Proxy.pool.acquire(timeout=20)

    def test_a_past_outage_is_not_reported(self, checks: CheckRecorder) -> None:
        hold(new(Proxy))
        checks.raising(DatabaseUnavailable("gone"))
        stop = threading.Event()
        one = InBackground(lambda: acquire.acquire(Proxy.pool, request(), stop.is_set))
        eventually(lambda: checks.by.count("resourcepool-waiters-default") > 1)
        stop.set()
        with pytest.raises(AcquireTimeout) as caught:
            one.result()
        assert "gone" not in str(caught.value)

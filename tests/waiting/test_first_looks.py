"""Who waits has the first looks itself, in its own thread and on its own connection; mostly no other need wake."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from resourcepool.bell import Bell
from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting import acquire, tickets
from resourcepool.waiting import waiter as of_one
from resourcepool.waiting.contention import Speed
from resourcepool.waiting.notices import notices
from resourcepool.waiting.waiter import Waiter
from resourcepool.waiting.waiters import waiters
from tests.app.rows import columns, expire, hold, new, several
from tests.concurrency.tickets import in_line
from tests.eventually import InBackground, eventually
from tests.waiting.waiters import given, ticket

HERE = threading.current_thread().name
LONG = 30.0  # seconds, which no test waits


class Looks:
    """Who looked, one name of a thread for each look; ``do`` is done before the next one."""

    def __init__(self, look: Callable[..., Any]) -> None:
        self.by: list[str] = []
        self.do: Callable[[], object] = lambda: None
        self._look = look

    def __call__(self, *args: Any) -> Any:
        self.by.append(threading.current_thread().name)
        do, self.do = self.do, lambda: None
        do()
        return self._look(*args)

    def raising(self, error: BaseException, *before: Callable[[], object]) -> None:
        """Do this before the next look, and have it fail then."""

        def fail() -> None:
            for do in before:
                do()
            raise error

        self.do = fail


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    looks = Looks(tickets.look)
    monkeypatch.setattr(tickets, "look", looks)
    return looks


@pytest.fixture
def _nobody_else_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    def join(waiter: Waiter) -> None:
        raise AssertionError(f"left to the thread: {waiter}")

    monkeypatch.setattr(waiters, "join", join)


@pytest.fixture
def _the_first_look_is_far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Speed, "first_pause", lambda *_: LONG)


@pytest.fixture(autouse=True)
def _every_ticket_is_forgotten(removed_at_once: None) -> Iterator[None]:
    notices._tickets.clear()
    yield
    eventually(lambda: not notices._tickets, because=lambda: f"not forgotten: {notices._tickets}")


def waiting(**wishes: Any) -> InBackground:
    """Start somebody who waits; return once it sleeps until its first look."""
    one = InBackground(lambda: Proxy.pool.acquire(**{"timeout": 60, "holder": "me", **wishes}))
    eventually(asleep)
    return one


def asleep() -> bool:
    """Whether somebody in this process waits for a notice itself."""
    return any(isinstance(bell, Bell) for bell in list(notices._tickets.values()))


class TestBeingServed:
    @pytest.mark.usefixtures("_nobody_else_looks")
    def test_by_the_first_look_needs_no_other_thread(self, looks: Looks) -> None:
        held = hold(new(Proxy))
        looks.do = held.release
        lease: Any = Proxy.pool.acquire(timeout=20)
        assert (lease.pk, lease.fence) == (held.pk, 2)
        assert looks.by == [HERE]
        lease.ensure_held()
        lease.renew()
        eventually(lambda: not Ticket.objects.exists())

    @pytest.mark.usefixtures("_nobody_else_looks")
    def test_by_a_later_look_does_not_either(self, looks: Looks) -> None:
        held = hold(new(Proxy))

        looks.do = lambda: setattr(looks, "do", held.release)
        lease: Any = Proxy.pool.acquire(timeout=20)
        assert lease.fence == 2
        assert looks.by == [HERE] * 2

    @pytest.mark.usefixtures("_nobody_else_looks", "_the_first_look_is_far_away")
    def test_a_release_wakes_who_sleeps_until_then(self, looks: Looks) -> None:
        held = hold(new(Proxy))
        one = waiting()
        held.release()
        assert one.result().fence == 2
        assert len(looks.by) == 1

    @pytest.mark.usefixtures("_nobody_else_looks", "_the_first_look_is_far_away")
    def test_a_notice_for_nothing_only_costs_a_look(self, looks: Looks) -> None:
        held = hold(new(Proxy))
        one = waiting()
        notices.look_at_all()
        eventually(lambda: looks.by)
        assert in_line() == ["me"]
        held.release()
        assert one.result().fence == 2

    def test_after_the_first_looks_is_up_to_the_thread(self, looks: Looks) -> None:
        held = hold(new(Proxy))
        one = InBackground(lambda: Proxy.pool.acquire(timeout=20, holder="me"))
        eventually(lambda: "resourcepool-waiters-default" in looks.by)
        assert looks.by[0] == one.name
        assert not asleep()
        held.release()
        assert one.result().fence == 2
        assert one.name not in looks.by[looks.by.index("resourcepool-waiters-default") :]

    @pytest.mark.usefixtures("_the_first_look_is_far_away")
    def test_with_several_is_up_to_the_thread_from_the_beginning(self, looks: Looks) -> None:
        held = [hold(row) for row in several(Proxy, 2)]
        one = InBackground(lambda: Proxy.pool.acquire_many(2, timeout=20, holder="me"))
        eventually(lambda: list(notices._tickets.values()) == [None])
        assert not asleep()
        for lease in held:
            lease.release()
        assert len(one.result()) == 2
        assert set(looks.by) == {"resourcepool-waiters-default"}

    @pytest.mark.usefixtures("_the_first_look_is_far_away")
    def test_a_release_wakes_who_waits_in_asyncio(self, looks: Looks) -> None:
        held = hold(new(Proxy))
        one = InBackground(lambda: asyncio.run(Proxy.pool.aacquire(timeout=60, holder="me")))
        eventually(lambda: list(notices._tickets.values()) == [None])
        held.release()
        assert one.result().fence == 2
        assert looks.by == ["resourcepool-waiters-default"]

    @pytest.mark.usefixtures("_nobody_else_looks")
    def test_a_notice_during_the_last_of_the_looks_is_not_lost(
        self, looks: Looks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        held = hold(new(Proxy))

        def released_just_afterwards(*_: Any, **__: Any) -> float:
            held.release()
            return LONG

        monkeypatch.setattr(of_one, "pause", released_just_afterwards)
        lease: Any = Proxy.pool.acquire(timeout=60)
        assert lease.fence == 2
        assert looks.by == [HERE] * 2


class TestATicketLostMeanwhile:
    def test_is_taken_anew_by_the_thread(self, looks: Looks) -> None:
        held = hold(new(Proxy))
        gone = threading.Event()
        looks.do = lambda: (Ticket.objects.all()._raw_delete("default"), gone.set())
        one = InBackground(lambda: Proxy.pool.acquire(timeout=20, holder="me"))
        assert gone.wait(5)
        eventually(lambda: in_line() == ["me"])
        held.release()
        assert one.result().fence == 2
        assert looks.by.count(one.name) == 1

    def test_passes_on_what_ran_out_before_it_was_seen(self, looks: Looks) -> None:
        """This process stood still."""
        row, behind = new(Proxy), []
        held = hold(row)

        def stand_still() -> None:
            behind.append(ticket(Proxy))
            held.release()
            expire(row)
            expire(Ticket.objects.get(holder="me"))

        looks.do = stand_still
        one = InBackground(lambda: Proxy.pool.acquire(timeout=20, holder="me"))
        eventually(lambda: behind and given(behind[0]) == [(row.pk, 3)])
        eventually(lambda: in_line() == ["me"])
        expire(row)
        assert one.result().fence == 4


class TestAnOutage:
    def test_in_the_first_looks_is_waited_through_by_the_thread(self, looks: Looks) -> None:
        held = hold(new(Proxy))
        looks.raising(DatabaseUnavailable("gone"))
        one = InBackground(lambda: Proxy.pool.acquire(timeout=20, holder="me"))
        eventually(lambda: "resourcepool-waiters-default" in looks.by)
        held.release()
        assert one.result().fence == 2
        assert looks.by.count(one.name) == 1

    def test_does_not_lose_what_was_given_meanwhile(self, looks: Looks) -> None:
        held = hold(new(Proxy))
        looks.raising(DatabaseUnavailable("gone"), held.release)
        lease: Any = Proxy.pool.acquire(timeout=20)
        assert lease.fence == 2

    def test_that_took_all_the_time_is_told(self, looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
        """The thread has not come to know of it."""
        hold(new(Proxy))
        monkeypatch.setattr(waiters, "trouble", lambda _: None)
        monkeypatch.setattr(acquire, "_outcome", lambda *_, **__: None)
        looks.raising(DatabaseUnavailable("database 'default': server has gone away"))
        with pytest.raises(AcquireTimeout, match="server has gone away"):
            Proxy.pool.acquire(timeout=20)

    def test_that_is_over_is_not_told(self, looks: Looks) -> None:
        hold(new(Proxy))
        looks.raising(DatabaseUnavailable("gone"))
        stop = threading.Event()
        one = InBackground(lambda: Proxy.pool.obtain(request(), stop.is_set))
        eventually(lambda: looks.by.count("resourcepool-waiters-default") > 1)
        stop.set()
        with pytest.raises(AcquireTimeout) as caught:
            one.result()
        assert "gone" not in str(caught.value)


def request(**wishes: Any) -> Any:
    return Proxy.pool.request(1, {"timeout": 60, "holder": "me", **wishes})


class TestLeaving:
    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, LookupError])
    def test_when_interrupted_in_a_look_takes_the_ticket_away(
        self, looks: Looks, error: type[BaseException]
    ) -> None:
        held = hold(new(Proxy))
        looks.raising(error())
        with pytest.raises(error):
            Proxy.pool.acquire(timeout=20)
        eventually(lambda: not Ticket.objects.exists())
        held.release()
        assert Proxy.pool.acquire(wait=False) is not None

    def test_when_interrupted_in_a_look_passes_on_what_was_given(self, looks: Looks) -> None:
        row, behind = new(Proxy), []
        held = hold(row)
        looks.raising(KeyboardInterrupt(), held.release, lambda: behind.append(ticket(Proxy)))
        with pytest.raises(KeyboardInterrupt):
            Proxy.pool.acquire(timeout=20)
        eventually(lambda: given(behind[0]) == [(row.pk, 3)])

    def test_when_interrupted_while_its_ticket_is_put_away_gives_back_what_was_given(
        self, looks: Looks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row = new(Proxy)
        looks.do = hold(row).release
        used = waiters.used

        def interrupted(waiter: Waiter) -> None:
            used(waiter)
            raise KeyboardInterrupt

        monkeypatch.setattr(waiters, "used", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Proxy.pool.acquire(timeout=20)
        assert (columns(row)["fence"], columns(row)["holder"]) == (3, "")

    def test_when_a_signal_raises_the_callers_own_timeout_error(self, looks: Looks) -> None:
        hold(new(Proxy))
        looks.raising(TimeoutError("the caller's own"))
        with pytest.raises(TimeoutError, match="the caller's own"):
            Proxy.pool.acquire(timeout=20)
        eventually(lambda: not Ticket.objects.exists())

    def test_when_interrupted_while_it_is_served_gives_back_what_was_given(
        self, looks: Looks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row = new(Proxy)
        looks.do = hold(row).release

        def interrupted(*_: Any, **__: Any) -> Any:
            raise KeyboardInterrupt

        monkeypatch.setattr(acquire, "handles", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Proxy.pool.acquire(timeout=20)
        eventually(lambda: not Ticket.objects.exists())
        eventually(lambda: columns(row)["holder"] == "")

    @pytest.mark.usefixtures("_the_first_look_is_far_away")
    def test_after_a_timeout_before_the_first_look_takes_the_ticket_away(self, looks: Looks) -> None:
        hold(new(Proxy))
        with pytest.raises(AcquireTimeout):
            Proxy.pool.acquire(timeout=0.05)
        assert HERE not in looks.by
        eventually(lambda: not Ticket.objects.exists())

    @pytest.mark.usefixtures("_the_first_look_is_far_away")
    def test_after_a_stop_while_it_sleeps_takes_the_ticket_away(self, looks: Looks) -> None:
        hold(new(Proxy))
        stop = threading.Event()
        one = InBackground(lambda: Proxy.pool.obtain(request(), stop.is_set))
        eventually(asleep)
        stop.set()
        with pytest.raises(AcquireTimeout):
            one.result()
        assert one.name not in looks.by
        eventually(lambda: not Ticket.objects.exists())

"""``Resource`` and concurrency: ends, fixes and losses during a replacement."""

import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest

from resourcepool import Resource
from resourcepool.exceptions import AcquireTimeout, LeaseLost
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting import tickets
from tests.app.models import Device
from tests.app.rows import busy_for, columns, hold, new, several, steal
from tests.committed import Clock
from tests.eventually import InBackground, eventually


class Crawler(Resource):
    """Holds a proxy; proxies in ``invalid`` are not valid."""

    model = Proxy
    occupation_delta = 60
    occupation_interval = 0.01
    acquire_timeout = 0.1
    invalid: ClassVar[set[Any]] = set()

    def is_valid(self) -> bool:
        return self.o.pk not in self.invalid


class Patient(Crawler):
    """Waits long for a replacement."""

    acquire_timeout = 60


@pytest.fixture
def start() -> Iterator[Callable[..., Any]]:
    """Create a resource and start it; stop it after the test."""
    Crawler.invalid = set()
    started: list[Resource] = []

    def make(kind: type[Resource] = Crawler) -> Any:
        started.append(kind())
        started[-1].start()
        return started[-1]

    yield make
    for one in started:
        one.terminate()
        one.join(60)
        assert not one.is_alive()


def test_any_kind_of_resource_will_do() -> None:
    device = new(Device)
    phone = type("Phone", (Crawler,), {"model": Device})()
    assert phone.o == device
    phone.terminate()
    assert busy_for(device) <= 0


def test_it_is_kept_before_it_is_started(process_clock: Clock) -> None:
    new(Proxy)
    crawler = Crawler()
    process_clock.advance(25)
    eventually(lambda: crawler.lease._trust.due_at > process_clock())
    crawler.terminate()


def test_a_fix_that_found_nothing_is_made_up_for_by_the_thread(start: Any) -> None:
    bad = new(Proxy)
    crawler = start()
    Crawler.invalid = {bad.pk}
    with pytest.raises(AcquireTimeout):
        crawler.fix()
    assert crawler.lease is None or crawler.lease.pk != bad.pk
    good = new(Proxy)
    eventually(lambda: crawler.o == good)
    crawler.ensure_held()


def test_many_fixes_while_the_thread_runs_leave_exactly_one_held(start: Any) -> None:
    rows = several(Proxy, 6)
    crawler = start()
    for _ in range(4):
        Crawler.invalid = {*Crawler.invalid, crawler.o.pk}
        crawler.fix()
    crawler.ensure_held()
    assert Proxy.objects.held().count() == 1
    assert sum(columns(row)["status"] == "quarantined" for row in rows) == 4


class Watched(Patient):
    """Its check of the row ``slow`` lasts until ``go_on`` is set, and then reads all attributes."""

    slow: ClassVar[Any] = None
    answer: ClassVar[bool] = True
    checking: ClassVar[threading.Event]
    go_on: ClassVar[threading.Event]
    seen: ClassVar[list[Any]]

    def is_valid(self) -> bool:
        if self.o != self.slow:
            return True
        self.checking.set()
        assert self.go_on.wait(60)
        assert self.lease is not None
        self.seen.append((self.o, self.lease.pk, str(self)))
        return self.answer


@pytest.mark.parametrize("answer", [True, False], ids=["valid", "invalid"])
@pytest.mark.parametrize("end", ["close", "terminate"])
class TestTheEndWhileAnotherThreadChecks:
    """``is_valid`` continues with its resource, and nothing is held afterwards."""

    def end(self, watched: Any, end: str, answer: bool, fix: InBackground | None = None) -> None:
        watched.answer = answer
        assert watched.checking.wait(60)
        getattr(watched, end)()
        assert (watched.o, watched.lease) == (None, None), "for others it is closed"
        watched.go_on.set()
        if fix is not None:
            fix.result()
        eventually(lambda: [(one, pk) for one, pk, _ in watched.seen] == [(watched.slow, watched.slow.pk)])
        eventually(lambda: not Proxy.objects.held().exclude(holder="thief").exists())
        assert watched.lease is None

    @pytest.fixture
    def kind(self) -> Any:
        events = {"checking": threading.Event(), "go_on": threading.Event(), "seen": []}
        return type("Watched", (Watched,), events)

    def test_what_is_held(self, kind: Any, end: str, answer: bool) -> None:
        row = new(Proxy)
        watched = kind()
        kind.slow, another = row, new(Proxy)
        self.end(watched, end, answer, InBackground(watched.fix))
        assert columns(row)["fence"] == 2
        assert columns(another)["fence"] == 0, "nobody looks for another one"

    def test_what_a_fix_has_found(self, kind: Any, end: str, answer: bool) -> None:
        lost, kind.slow = new(Proxy), None
        watched = kind()
        kind.slow = new(Proxy)
        steal(lost)
        with pytest.raises(LeaseLost):
            watched.keep_occupation()
        self.end(watched, end, answer, InBackground(watched.fix))

    def test_what_its_thread_has_found(self, kind: Any, end: str, answer: bool, start: Any) -> None:
        lost = new(Proxy)
        watched = start(kind)
        kind.slow = new(Proxy)
        steal(lost)
        self.end(watched, end, answer)


@pytest.mark.parametrize("use", ["o", "lease", "ensure_held", "keep_occupation", "__str__"])
def test_a_use_while_it_is_closed_is_one_before_or_after(use: str) -> None:
    """Another thread closes it between any two lines."""
    new(Proxy)

    class Closing(Crawler):
        """Closed after the first access."""

        _held_once: Any = None
        looks = 0

        @property
        def _lease(self) -> Any:
            self.looks += 1
            return self._held_once if self.looks == 1 else None

        @_lease.setter
        def _lease(self, lease: Any) -> None:
            self._held_once, self.looks = lease, 0

        def _acquire(self) -> None:
            self._lease = None
            self._lease = Proxy.pool.acquire()

    crawler = Closing()
    value = getattr(crawler, use)
    if callable(value):
        value()
    crawler._held_once.release()


def test_what_comes_free_after_close_is_given_back(start: Any) -> None:
    """It comes while the thread waits for a replacement."""
    first = new(Proxy)
    crawler = start(Patient)
    steal(first)
    eventually(Ticket.objects.exists)
    crawler.close()
    second = new(Proxy)
    eventually(lambda: columns(second)["fence"] == 2)
    assert columns(second)["holder"] == ""
    assert crawler.lease is None


def test_what_comes_free_when_it_terminates_is_given_back(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread gets it just before it leaves the line."""
    first = new(Proxy)
    crawler, leave = start(Patient), tickets.leave
    held = [hold(second := new(Proxy), holder="other")]

    def released_before(*args: Any) -> bool:
        while held:
            held.pop().release()
        assert columns(second)["holder"] not in ("", "other"), "given to the ticket"
        return leave(*args)

    monkeypatch.setattr(tickets, "leave", released_before)
    steal(first)
    eventually(Ticket.objects.exists)
    crawler.terminate()
    eventually(lambda: columns(second)["fence"] == 3)
    assert columns(second)["holder"] == ""
    assert crawler.lease is None


@pytest.mark.parametrize("end", ["close", "terminate"])
def test_the_end_does_not_wait_for_a_search_that_takes_long(start: Any, end: str) -> None:
    proxy = new(Proxy)
    crawler = start(Patient)
    thief = steal(proxy)
    eventually(crawler.lease.lost.is_set)
    InBackground(getattr(crawler, end)).result()
    assert columns(proxy)["fence"] == thief.fence
    new(Proxy)  # ends the search


def test_one_that_was_closed_stays_closed_while_its_thread_runs(start: Any) -> None:
    proxy = new(Proxy)
    crawler = start()
    crawler.close()
    another = start()
    eventually(lambda: another.o == proxy)
    another.close()
    assert crawler.lease is None
    assert Proxy.pool.acquire(timeout=1).pk == proxy.pk

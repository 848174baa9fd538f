"""``Resource``, the documents' thread class (R0.3 to R0.6)."""

import datetime
import logging
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from django.db import connection

from resourcepool import Resource
from resourcepool.dialect import DbLater
from resourcepool.exceptions import AcquireTimeout, BadOption, LeaseLost, LeaseReleased
from resourcepool.leases import verbs
from resourcepool.models import Proxy, Ticket
from resourcepool.resources.resource import MOST_INVALID
from tests.app.models import Bare, Device
from tests.app.rows import busy_for, change, columns, granted, hold, new, several, steal
from tests.committed import Clock
from tests.eventually import InBackground, eventually


class Crawler(Resource):
    """Holds a proxy; those in ``invalid`` are not."""

    model = Proxy
    occupation_delta = datetime.timedelta(minutes=1)
    occupation_interval = 0.01
    acquire_timeout = 0.1
    invalid: ClassVar[set[int]] = set()
    checked: ClassVar[list[int]] = []

    def is_valid(self) -> bool:
        self.checked.append(self.o.pk)
        return self.o.pk not in self.invalid


@pytest.fixture(autouse=True)
def _nothing_is_invalid() -> Iterator[None]:
    Crawler.invalid, Crawler.checked = set(), []
    yield
    Crawler.invalid, Crawler.checked = set(), []


@pytest.fixture
def start() -> Iterator[Callable[..., Any]]:
    """Make a resource and start it; stop it after the test."""
    started: list[Resource] = []

    def make(kind: type[Resource] = Crawler, **options: Any) -> Any:
        one = kind(**options)
        started.append(one)
        one.start()
        return one

    yield make
    for one in started:
        one.terminate()
        one.join(10)
        assert not one.is_alive()


class TestConstruction:
    def test_acquires_a_valid_resource(self) -> None:
        proxy = new(Proxy)
        crawler = Crawler()
        assert crawler.o == proxy
        assert crawler.checked == [proxy.pk]
        assert 59 < busy_for(proxy) <= 60
        crawler.ensure_held()

    def test_waits_until_something_is_free(self) -> None:
        held = hold(new(Proxy))

        class Patient(Crawler):
            acquire_timeout = 20

        waiting = InBackground(Patient)
        assert waiting.is_alive()
        held.release()
        assert waiting.result().o.pk == held.pk

    def test_gives_up_after_its_timeout(self) -> None:
        hold(new(Proxy))
        with pytest.raises(AcquireTimeout):
            Crawler()

    def test_puts_invalid_ones_away_and_tries_another(self) -> None:
        rows = several(Proxy, 4)
        Crawler.invalid = {row.pk for row in rows[:3]}
        crawler = Crawler()
        assert crawler.o == rows[3]
        for row in rows[:3]:
            parked = columns(row)
            assert parked["status"] in ("quarantined", "in_service")
            assert (parked["status"] == "quarantined") == (row.pk in crawler.checked)
        assert columns(rows[3])["strikes"] == 0

    def test_blames_the_checker_when_everything_is_invalid(self) -> None:
        rows = several(Proxy, MOST_INVALID + 5)
        Crawler.invalid = {row.pk for row in rows}
        with pytest.raises(AcquireTimeout, match=r"10 in a row were not valid: is Crawler.is_valid\(\) right?"):
            Crawler()
        assert Proxy.objects.available().count() == 5

    def test_releases_when_the_checker_fails(self) -> None:
        proxy = new(Proxy)

        class Broken(Crawler):
            def is_valid(self) -> bool:
                raise LookupError("the checker is broken")

        with pytest.raises(LookupError):
            Broken()
        assert busy_for(proxy) <= 0
        assert columns(proxy)["strikes"] == 0

    def test_takes_only_what_its_selectors_match(self) -> None:
        new(Proxy, country="DE")
        us = new(Proxy, country="US")

        class American(Crawler):
            selectors: ClassVar = {"country": "US"}

        assert American().o == us

    def test_works_with_any_kind_of_resource(self) -> None:
        device = new(Device)

        class Phone(Crawler):
            model = Device

        phone = Phone()
        assert phone.o == device
        phone.close()

    def test_keeps_what_it_has_before_it_is_started(self, process_clock: Clock) -> None:
        new(Proxy)
        crawler = Crawler()
        process_clock.advance(25)
        eventually(lambda: crawler.lease.due_at > process_clock())


class TestAttributes:
    @pytest.mark.parametrize("model", [None, Bare, "Proxy", int])
    def test_a_model_that_is_no_resource_is_refused(self, model: Any) -> None:
        kind = type("Wrong", (Crawler,), {"model": model})
        with pytest.raises(BadOption, match="a Django model derived from AbstractResource"):
            kind()

    @pytest.mark.parametrize(
        ("attributes", "wrong"),
        [
            ({"occupation_delta": 0}, "occupation_delta=0 is not allowed"),
            ({"occupation_delta": "a minute"}, "occupation_delta='a minute'"),
            ({"occupation_interval": 21}, "occupation_interval=21 is not allowed: .* to 20 seconds"),
            ({"occupation_interval": 0}, "occupation_interval=0"),
            ({"acquire_timeout": -1}, "timeout=-1"),
            ({"selectors": {"city": "Rome"}}, "city='Rome'"),
        ],
    )
    def test_a_value_out_of_range_is_refused_by_name(self, attributes: dict[str, Any], wrong: str) -> None:
        new(Proxy)
        with pytest.raises(BadOption, match=wrong):
            type("Wrong", (Crawler,), attributes)()
        assert Proxy.objects.available().count() == 1

    def test_is_valid_must_be_written(self) -> None:
        proxy = new(Proxy)

        class Unfinished(Resource):
            model = Proxy

        with pytest.raises(NotImplementedError, match=r"Unfinished must define is_valid\(\)"):
            Unfinished()
        assert busy_for(proxy) <= 0


class TestKeepOccupation:
    def test_renews(self) -> None:
        proxy = new(Proxy)
        crawler = Crawler()
        change(proxy, busy_before=DbLater(10))
        crawler.keep_occupation()
        assert busy_for(proxy) > 59

    def test_says_that_it_was_lost(self) -> None:
        proxy = new(Proxy)
        crawler = Crawler()
        steal(proxy)
        with pytest.raises(LeaseLost):
            crawler.keep_occupation()
        with pytest.raises(LeaseLost):
            crawler.ensure_held()

    def test_after_close_says_that_nothing_is_held(self) -> None:
        new(Proxy)
        crawler = Crawler()
        crawler.close()
        for use in (crawler.keep_occupation, crawler.ensure_held):
            with pytest.raises(LeaseReleased, match="holds nothing: it was closed"):
                use()


class TestRunning:
    def test_renews_by_itself(self, start: Any) -> None:
        proxy = new(Proxy)
        start()
        change(proxy, busy_before=DbLater(10))
        eventually(lambda: busy_for(proxy) > 59)

    def test_replaces_what_was_lost(self, start: Any) -> None:
        first, second = several(Proxy, 2)
        crawler = start()
        before = crawler.o
        steal(before)
        eventually(lambda: crawler.lease.pk != before.pk)
        assert {before, crawler.o} == {first, second}
        crawler.ensure_held()
        assert columns(before)["holder"] == "thief"

    def test_goes_on_looking_until_something_is_free(self, start: Any) -> None:
        proxy = new(Proxy)
        changes: list[Any] = []
        crawler = start(on_change=lambda old, new: changes.append((old, new)))
        thief = steal(proxy)
        eventually(lambda: crawler.lease is None or crawler.lease.lost.is_set())
        verbs.release(connection, Proxy, proxy.pk, thief.fence, 0)
        eventually(lambda: changes)
        assert crawler.lease.fence > thief.fence

    def test_goes_on_looking_although_the_first_it_found_was_invalid(
        self, start: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Nothing is held between putting the invalid one away and finding another; it must not stop there."""
        first, bad = new(Proxy), new(Proxy)
        granted(bad, "somebody else")
        crawler = start()
        Crawler.invalid = {bad.pk}
        steal(first)
        change(bad, busy_before=DbLater(-1))
        eventually(lambda: columns(bad)["status"] == "quarantined")
        eventually(lambda: "came free within 0.1 s" in caplog.text)
        good = new(Proxy)
        eventually(lambda: crawler.o == good)
        crawler.ensure_held()

    def test_goes_on_looking_after_the_checker_failed(
        self, start: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        proxy = new(Proxy)
        fails = threading.Event()

        class Moody(Crawler):
            def is_valid(self) -> bool:
                if fails.is_set():
                    raise LookupError("the checker is in a mood")
                return True

        crawler = start(Moody)
        fails.set()
        thief = steal(proxy)
        other = new(Proxy)
        eventually(lambda: "the checker is in a mood" in caplog.text)
        fails.clear()
        eventually(lambda: crawler.o == other)
        assert thief.fence == columns(proxy)["fence"]

    def test_survives_a_broken_on_change(self, start: Any, caplog: pytest.LogCaptureFixture) -> None:
        several(Proxy, 3)

        def broken(*_: Any) -> None:
            raise LookupError("nobody expected a change")

        crawler = start(on_change=broken)
        for _ in range(2):
            before = crawler.o
            steal(before)
            eventually(lambda before=before: crawler.o is not None and crawler.o != before)
        assert "nobody expected a change" in caplog.text
        assert crawler.is_alive()

    def test_does_not_say_on_change_for_the_first(self, start: Any) -> None:
        changes: list[Any] = []
        proxy = new(Proxy)
        start(on_change=lambda *both: changes.append(both))
        change(proxy, busy_before=DbLater(10))
        eventually(lambda: busy_for(proxy) > 59)
        assert changes == []


class TestFix:
    def test_of_a_valid_one_does_nothing(self) -> None:
        proxy = new(Proxy)
        crawler = Crawler()
        before = columns(proxy)
        crawler.fix()
        assert columns(proxy) == before
        assert crawler.o == proxy

    def test_of_an_invalid_one_puts_it_away_and_gets_another(self) -> None:
        changes: list[Any] = []
        several(Proxy, 2)
        crawler = Crawler(on_change=lambda old, new: changes.append((old, new)))
        bad = crawler.o
        Crawler.invalid = {bad.pk}
        crawler.fix()
        assert crawler.o != bad
        assert changes == [(bad, crawler.o)]
        assert columns(bad)["status"] == "quarantined"
        crawler.ensure_held()

    def test_without_another_one_holds_nothing_and_says_so(self) -> None:
        proxy = new(Proxy)
        crawler = Crawler()
        Crawler.invalid = {proxy.pk}
        with pytest.raises(AcquireTimeout):
            crawler.fix()
        assert crawler.o is None
        assert crawler.lease is None
        assert "holding nothing" in str(crawler)

    def test_without_another_one_is_made_up_for_when_it_runs(self, start: Any) -> None:
        bad = new(Proxy)
        crawler = start()
        Crawler.invalid = {bad.pk}
        with pytest.raises(AcquireTimeout):
            crawler.fix()
        good = new(Proxy)
        eventually(lambda: crawler.o == good)

    def test_of_a_lost_one_gets_another_and_does_not_touch_the_successor(self) -> None:
        several(Proxy, 2)
        crawler = Crawler()
        lost = crawler.o
        steal(lost)
        before = columns(lost)
        with pytest.raises(LeaseLost):
            crawler.keep_occupation()
        crawler.fix()
        assert crawler.o != lost
        assert columns(lost) == before

    def test_may_be_called_while_it_runs(self, start: Any) -> None:
        rows = several(Proxy, 6)
        crawler = start()
        for _ in range(4):
            Crawler.invalid = {*Crawler.invalid, crawler.o.pk}
            crawler.fix()
        crawler.ensure_held()
        assert Proxy.objects.held().count() == 1
        assert sum(columns(row)["status"] == "quarantined" for row in rows) == 4


class TestEnding:
    def test_close_releases_and_may_be_repeated(self) -> None:
        proxy = new(Proxy)
        crawler = Crawler()
        crawler.close()
        assert busy_for(proxy) <= 0
        assert crawler.o is None
        granted(proxy, "successor")
        before = columns(proxy)
        crawler.close()
        assert columns(proxy) == before

    def test_close_of_one_that_runs_stays_closed(self, start: Any) -> None:
        proxy = new(Proxy)
        crawler = start()
        crawler.close()
        another = start()
        eventually(lambda: another.o == proxy)
        change(proxy, busy_before=DbLater(10))
        eventually(lambda: busy_for(proxy) > 59)
        assert crawler.lease is None

    def test_fix_after_close_opens_it_again(self) -> None:
        proxy = new(Proxy)
        crawler = Crawler()
        crawler.close()
        crawler.fix()
        assert crawler.o == proxy

    def test_terminate_releases_and_stops_the_thread(self, start: Any) -> None:
        proxy = new(Proxy)
        crawler = start()
        crawler.terminate()
        crawler.join(5)
        assert not crawler.is_alive()
        assert busy_for(proxy) <= 0

    def test_terminate_before_start_is_fine(self) -> None:
        proxy = new(Proxy)
        crawler = Crawler()
        crawler.terminate()
        assert busy_for(proxy) <= 0
        crawler.start()
        crawler.join(5)
        assert not crawler.is_alive()

    @pytest.mark.parametrize("end", ["close", "terminate"])
    def test_what_is_found_after_the_end_is_given_back(self, start: Any, end: str) -> None:
        """The end comes while another resource is being sought and checked."""
        first = new(Proxy)
        checking, go_on = threading.Event(), threading.Event()

        class Slow(Crawler):
            def is_valid(self) -> bool:
                if self.o.pk != first.pk:
                    checking.set()
                    go_on.wait(10)
                return True

        crawler = start(Slow)
        steal(first)
        second = new(Proxy)
        assert checking.wait(5)
        getattr(crawler, end)()
        go_on.set()
        eventually(lambda: columns(second)["holder"] == "" and busy_for(second) <= 0)
        assert crawler.lease is None

    @pytest.mark.parametrize("end", ["close", "terminate"])
    def test_what_comes_free_after_the_end_is_given_back(self, start: Any, end: str) -> None:
        class Patient(Crawler):
            acquire_timeout = 5

        first = new(Proxy)
        crawler = start(Patient)
        steal(first)
        eventually(Ticket.objects.exists)
        getattr(crawler, end)()
        second = new(Proxy)
        eventually(lambda: columns(second)["fence"] == 2)
        assert columns(second)["holder"] == ""
        assert crawler.lease is None

    @pytest.mark.parametrize("end", ["close", "terminate"])
    def test_does_not_wait_for_a_search_that_takes_long(self, start: Any, end: str) -> None:
        class Patient(Crawler):
            acquire_timeout = 3

        proxy = new(Proxy)
        crawler = start(Patient)
        thief = steal(proxy)
        eventually(crawler.lease.lost.is_set)
        InBackground(getattr(crawler, end)).result(timeout=1)
        assert columns(proxy)["fence"] == thief.fence


class TestText:
    def test_names_class_process_and_resource_without_the_password(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        proxy = new(Proxy, username="user", password="c4n4ry")
        with caplog.at_level(logging.DEBUG, "resourcepool"):
            crawler = Crawler()
            crawler.fix()
            text = str(crawler)
            crawler.close()
        assert text == f"Crawler[{os.getpid()}] holding http://user:***@{proxy.host}:3128"
        assert text in caplog.text
        assert "c4n4ry" not in caplog.text + repr(crawler)

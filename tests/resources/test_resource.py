"""``Resource``: construction, renewal and replacement."""

import datetime
import logging
import os
from typing import Any

import pytest
from django.db import ProgrammingError

from resourcepool import Resource
from resourcepool.exceptions import AcquireTimeout, BadOption
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from resourcepool.models import Proxy
from resourcepool.resources import resource as module
from tests.app.models import Team
from tests.app.rows import busy_for, columns, expire, lasts, new, several, steal
from tests.concurrency.tickets import in_line
from tests.eventually import InBackground, eventually
from tests.resources.recording_resource import Changes, RecordingResource, kind, quarantined


class TestConstruction:
    def test_acquires_one_that_is_valid(self, keep: Any) -> None:
        row = new(Proxy, host="good.example")
        kept = keep()
        assert kept.o == row
        assert kept.asked == ["good.example"]
        assert lasts(row, 2)
        assert columns(row)["holder"] == kept.lease.holder
        kept.ensure_held()

    def test_puts_the_invalid_ones_away_and_takes_another(self, keep: Any) -> None:
        for number in range(4):
            new(Proxy, host=f"{number}.example")
        RecordingResource.bad = {"0.example", "1.example", "2.example"}
        assert keep().o.host == "3.example"
        assert set(quarantined()) == set(RecordingResource.asked) - {"3.example"}
        for row in Proxy.objects.quarantined():
            assert (row.holder, row.reason, row.strikes) == ("", "is_valid() returned False", 1)
            assert busy_for(row) > 290

    def test_waits_until_one_comes_free(self, keep: Any) -> None:
        new(Proxy)
        with Proxy.pool.lease():
            waiting = InBackground(RecordingResource)
            eventually(in_line)
        kept = waiting.result()
        kept.ensure_held()
        kept.close()

    def test_says_when_nothing_came_free(self) -> None:
        new(Proxy)
        with Proxy.pool.lease(), pytest.raises(AcquireTimeout, match=r"no resourcepool\.Proxy came free"):
            kind(acquire_timeout=0.1)()

    def test_takes_only_what_its_selectors_match(self, keep: Any) -> None:
        several(Proxy, 5)
        german = new(Proxy, country="DE")
        assert keep(kind(selectors={"country": "DE"})).o == german

    def test_gives_back_what_it_could_not_check(self) -> None:
        row = new(Proxy)

        def is_valid(self: Any) -> bool:
            raise LookupError("the checker is broken")

        with pytest.raises(LookupError):
            kind(is_valid=is_valid)()
        assert (columns(row)["holder"], columns(row)["status"]) == ("", "in_service")
        assert busy_for(row) <= 0
        eventually(lambda: keeper.leases() == [])  # its ticket goes a moment later

    def test_blames_the_checker_when_everything_is_invalid(self) -> None:
        """Otherwise a broken checker would quarantine the whole pool."""
        several(Proxy, module.MAX_INVALID + 5)
        with pytest.raises(
            AcquireTimeout, match=r"10 in a row were not valid: is RecordingResource.is_valid\(\) right\?"
        ):
            kind(is_valid=lambda self: False)()
        assert Proxy.objects.quarantined().count() == module.MAX_INVALID
        assert Proxy.objects.available().count() == 5

    def test_without_is_valid_says_so(self) -> None:
        row = new(Proxy)
        unfinished = type("Unfinished", (Resource,), {"model": Proxy})
        with pytest.raises(NotImplementedError, match=r"Unfinished must define is_valid\(\)"):
            unfinished()
        assert busy_for(row) <= 0

    @pytest.mark.parametrize(
        ("attributes", "wrong"),
        [
            ({"model": None}, "model=None"),
            ({"model": Team}, "model=.*Team.*derived from AbstractResource"),
            ({"model": "resourcepool.Proxy"}, "model='resourcepool.Proxy'"),
            ({"occupation_delta": 1, "occupation_interval": 0.34}, "occupation_interval=0.34.*0.333"),
            ({"occupation_interval": 0}, "occupation_interval=0"),
            ({"occupation_interval": "often"}, "occupation_interval='often'"),
            ({"occupation_delta": None}, "occupation_delta=None"),
            ({"occupation_delta": -1}, "occupation_delta=-1"),
            ({"acquire_timeout": -1}, "timeout=-1"),
            ({"selectors": {"colour": "red"}}, "colour"),
        ],
    )
    def test_refuses_a_wrong_attribute_by_name(self, attributes: dict[str, Any], wrong: str) -> None:
        new(Proxy)
        with pytest.raises(BadOption, match=wrong):
            kind(**attributes)()
        assert Proxy.objects.held().count() == 0

    def test_takes_times_as_timedelta(self, keep: Any) -> None:
        row = new(Proxy)
        minute = datetime.timedelta(minutes=1)
        keep(kind(occupation_delta=minute, occupation_interval=minute / 3))
        assert lasts(row, 60)


class TestKeeping:
    def test_renews_for_as_long_as_it_runs(self, keep: Any) -> None:
        row = new(Proxy)
        kept = keep(kind(occupation_delta=0.6))
        kept.start()
        for _ in range(3):
            before = columns(row)["busy_before"]
            eventually(lambda before=before: columns(row)["busy_before"] > before)
        assert columns(row)["fence"] == 1
        kept.ensure_held()

    def test_keep_occupation_renews_once(self, keep: Any) -> None:
        row = new(Proxy)
        kept = keep(kind(occupation_delta=60))
        before = columns(row)["busy_before"]
        kept.keep_occupation()
        assert columns(row)["busy_before"] > before

    def test_a_loss_is_made_good_by_another_one_and_told(self, keep: Any) -> None:
        changes = Changes()
        rows = several(Proxy, 2)
        kept = keep(on_change=changes)
        lost, handle = kept.o, kept.lease
        kept.start()
        thief = steal(lost)
        eventually(lambda: changes.seen)
        (other,) = {row.pk for row in rows} - {lost.pk}
        assert kept.o.pk == other
        assert changes.seen == [(lost, kept.o)]
        assert handle.lost.is_set()
        kept.ensure_held()
        assert columns(lost)["fence"] == thief.fence
        assert columns(lost)["holder"] == "thief"

    def test_a_loss_may_be_made_good_by_the_same_one_under_a_new_fence(self, keep: Any) -> None:
        changes = Changes()
        row = new(Proxy)
        kept = keep(on_change=changes)
        kept.start()
        expire(row)
        eventually(lambda: changes.seen)
        assert changes.seen == [(row, row)]
        assert kept.lease.fence == 2

    def test_a_loss_is_made_good_as_soon_as_something_comes_free(
        self, keep: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        changes = Changes()
        row = new(Proxy)
        kept = keep(kind(acquire_timeout=0.1), on_change=changes)
        kept.start()
        grant = steal(row)
        eventually(kept.lease.lost.is_set)
        eventually(lambda: caplog.text.count("; trying again") > 1)
        expire(row)
        eventually(lambda: changes.seen)
        assert kept.lease.fence == grant.fence + 1

    def test_a_replacement_is_checked_too(self, keep: Any) -> None:
        changes = Changes()
        first = new(Proxy, host="first.example")
        kept = keep(on_change=changes)
        for host in ("bad.example", "worse.example", "good.example"):
            new(Proxy, host=host)
        RecordingResource.bad = {"bad.example", "worse.example"}
        kept.start()
        steal(first)
        eventually(lambda: changes.seen)
        assert kept.o.host == "good.example"
        assert [(old.host, new.host) for old, new in changes.seen] == [("first.example", "good.example")]

    def test_goes_on_looking_when_all_that_was_free_was_invalid(self, keep: Any) -> None:
        """The bad one is quarantined and no other comes in time; it must try again later."""
        changes = Changes()
        first = new(Proxy, host="first.example")
        kept = keep(kind(acquire_timeout=0.1), on_change=changes)
        new(Proxy, host="bad.example")
        RecordingResource.bad = {"bad.example"}
        kept.start()
        steal(first)
        eventually(lambda: quarantined() == ["bad.example"])
        eventually(lambda: kept.o is None)
        new(Proxy, host="good.example")
        eventually(lambda: changes.seen)
        assert [(old.host, new.host) for old, new in changes.seen] == [("first.example", "good.example")]

    def test_goes_on_looking_when_the_checker_failed_once(self, keep: Any) -> None:
        changes, failures = Changes(), [LookupError("once")]

        def is_valid(self: Any) -> bool:
            if self.o.host == "second.example" and failures:
                raise failures.pop()
            return True

        first = new(Proxy, host="first.example")
        kept = keep(kind(is_valid=is_valid), on_change=changes)
        new(Proxy, host="second.example")
        kept.start()
        steal(first)
        eventually(lambda: changes.seen)
        assert failures == []
        assert kept.o.host == "second.example"
        kept.ensure_held()

    def test_does_not_end_with_a_callback_that_fails(self, keep: Any, caplog: pytest.LogCaptureFixture) -> None:
        def fails(old: Any, new: Any) -> None:
            raise LookupError("the callback is broken")

        several(Proxy, 2)
        kept = keep(on_change=fails)
        kept.start()
        steal(kept.o)
        eventually(lambda: "the callback is broken" in caplog.text)
        before = columns(kept.o)["busy_before"]
        eventually(lambda: columns(kept.o)["busy_before"] > before)
        assert kept.is_alive()

    def test_does_not_end_with_what_the_database_says(
        self, keep: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuses(*_: Any) -> int:
            raise ProgrammingError("nobody thought of this")

        row = new(Proxy)
        kept = keep()
        renew = verbs.renew
        monkeypatch.setattr(verbs, "renew", refuses)
        kept.start()
        eventually(lambda: caplog.text.count("nobody thought of this") > 1)
        monkeypatch.setattr(verbs, "renew", renew)
        before = columns(row)["busy_before"]
        eventually(lambda: columns(row)["busy_before"] > before)
        assert kept.is_alive()


class TestWords:
    def test_name_the_process_and_the_resource_but_no_password(self, keep: Any) -> None:
        new(Proxy, host="proxy.example", username="me", password="hunter2-is-secret")
        kept = keep()
        assert str(kept) == f"RecordingResource[{os.getpid()}] holding http://me:***@proxy.example:3128"
        kept.close()
        assert str(kept) == f"RecordingResource[{os.getpid()}] holding nothing"

    def test_in_the_log_too(self, keep: Any, caplog: pytest.LogCaptureFixture) -> None:
        for host in ("one.example", "two.example", "three.example"):
            new(Proxy, host=host, username="me", password="hunter2-is-secret")
        with caplog.at_level(logging.DEBUG):
            kept = keep()
            kept.start()
            RecordingResource.bad = {kept.o.host}
            kept.fix()
            steal(kept.o)
            eventually(lambda: "is lost" in caplog.text)
            eventually(lambda: kept.lease is not None and kept.lease.is_held)
            kept.terminate()
            kept.join(60)
        assert f"RecordingResource[{os.getpid()}] holding http://me:***@" in caplog.text
        assert "hunter2" not in caplog.text

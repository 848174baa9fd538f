"""``Resource``: close, terminate and fix."""

from typing import Any

import pytest

from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable, LeaseLost, LeaseReleased
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from resourcepool.models import Proxy
from resourcepool.resources.lease import ResourceLease
from tests.app.rows import busy_for, columns, new, several, steal
from tests.concurrency.tickets import in_line
from tests.eventually import eventually
from tests.leases.test_lease import unavailable
from tests.resources.recording_resource import Changes, RecordingResource, kind, quarantined


class TestInAnOutage:
    """The handle of the lease is dropped, so the lease must expire."""

    @pytest.fixture(autouse=True)
    def _the_database_takes_nothing_back(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(verbs, "release", unavailable)
        monkeypatch.setattr(ResourceLease, "_store_quarantine", unavailable)

    def test_what_is_not_valid_is_not_renewed_any_more(self) -> None:
        new(Proxy)
        with pytest.raises(DatabaseUnavailable):
            kind(is_valid=lambda self: False)()
        assert [lease for lease in keeper.leases() if lease.model is Proxy] == []

    def test_what_interrupts_the_checker_is_not_lost(self) -> None:
        new(Proxy)

        def is_valid(_: Any) -> bool:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            kind(is_valid=is_valid)()
        assert [lease for lease in keeper.leases() if lease.model is Proxy] == []


class TestClose:
    def test_frees_it(self, keep: Any) -> None:
        row = new(Proxy)
        kept = keep()
        kept.close()
        assert busy_for(row) <= 0
        assert (columns(row)["holder"], columns(row)["fence"]) == ("", 2)
        assert kept.o is None
        assert kept.lease is None
        for use in (kept.ensure_held, kept.keep_occupation):
            with pytest.raises(LeaseReleased, match="holds nothing"):
                use()

    @pytest.mark.parametrize("again", [True, False], ids=["repeated", "lost"])
    def test_leaves_the_successor_alone(self, keep: Any, again: bool) -> None:
        row = new(Proxy)
        kept = keep()
        if again:
            kept.close()
        steal(row)
        before = columns(row)
        kept.close()
        assert columns(row) == before


class TestTerminate:
    @pytest.mark.parametrize("is_started", [True, False])
    def test_frees_it_and_ends_the_thread(self, keep: Any, is_started: bool) -> None:
        row = new(Proxy)
        kept = keep(kind(occupation_delta=360, occupation_interval=120))
        if is_started:
            kept.start()
        kept.terminate()
        if not is_started:
            kept.start()
        kept.join(60)  # less than its interval
        assert not kept.is_alive()
        assert busy_for(row) <= 0

    def test_ends_a_thread_that_waits_for_a_replacement(self, keep: Any) -> None:
        row = new(Proxy)
        kept = keep(kind(acquire_timeout=120))
        kept.start()
        steal(row)
        eventually(in_line)
        kept.terminate()
        kept.join(60)  # less than it would have waited
        assert not kept.is_alive()
        eventually(lambda: not in_line())
        assert columns(row)["holder"] == "thief"


class TestFix:
    def test_of_a_valid_one_does_nothing(self, keep: Any) -> None:
        changes = Changes()
        several(Proxy, 2)
        kept = keep(on_change=changes)
        handle, before = kept.lease, columns(kept.o)
        kept.fix()
        assert kept.lease is handle
        assert columns(kept.o)["fence"] == before["fence"]
        assert changes.seen == []
        assert quarantined() == []

    def test_of_an_invalid_one_puts_it_away_and_takes_another(self, keep: Any) -> None:
        changes = Changes()
        several(Proxy, 2)
        kept = keep(on_change=changes)
        bad = kept.o
        RecordingResource.bad = {bad.host}
        kept.fix()
        assert kept.o.pk != bad.pk
        assert changes.seen == [(bad, kept.o)]
        assert quarantined() == [bad.host]
        kept.ensure_held()

    @pytest.mark.parametrize("is_noticed", [True, False])
    def test_of_a_lost_one_takes_another_and_leaves_the_successor_alone(
        self, keep: Any, is_noticed: bool
    ) -> None:
        several(Proxy, 2)
        kept = keep()
        lost = kept.o
        RecordingResource.bad = {lost.host}
        steal(lost)
        if is_noticed:
            with pytest.raises(LeaseLost):
                kept.keep_occupation()
        before = columns(lost)
        kept.fix()
        assert kept.o.pk != lost.pk
        assert columns(lost) == before

    def test_without_another_one_says_so_and_holds_nothing(self, keep: Any) -> None:
        row = new(Proxy)
        kept = keep(kind(acquire_timeout=0.1))
        RecordingResource.bad = {row.host}
        with pytest.raises(AcquireTimeout):
            kept.fix()
        assert kept.o is None
        assert quarantined() == [row.host]
        eventually(lambda: keeper.leases() == [])  # its ticket goes a moment later

    def test_after_close_acquires_again(self, keep: Any) -> None:
        row = new(Proxy)
        kept = keep()
        kept.close()
        kept.fix()
        assert kept.o == row
        assert kept.lease.fence == 3

"""The sweep reports expired leases, returns due resources to service, and changes nothing else."""

from typing import Any, ClassVar

import pytest
from django.db import transaction
from django.db.models import F

from resourcepool.db.dialect import DbLater
from resourcepool.exceptions import LeaseLost
from resourcepool.history.recorder import recorder
from resourcepool.leases.keeper import keeper
from resourcepool.models import Event, Job, Move, Proxy, Sample
from resourcepool.resources.state import Status
from resourcepool.signals import EventKind
from resourcepool.sweeps import sweep as sweeping
from resourcepool.sweeps.sweep import prune, refresh_statistics, report_overtaken, sweep, take_samples
from tests.app.rows import change, columns, expire, granted, new
from tests.committed import Statement


@pytest.fixture(autouse=True)
def history(settings: Any) -> Any:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY": True}
    yield
    recorder._waiting.clear()
    for model in (Event, Sample):
        model.objects.all()._raw_delete("default")


def recorded(row: Any) -> list[str]:
    recorder.flush()
    return list(Event.objects.of(row).order_by("pk").values_list("what", flat=True))


def test_an_expired_lease_is_cleared_and_reported_with_its_holder() -> None:
    proxy = new(Proxy)
    grant = granted(proxy, "crawler 7")
    expire(proxy)
    assert "1 lease expired" in (sweep() or "")
    assert (columns(proxy)["holder"], columns(proxy)["fence"]) == ("", grant.fence + 1)
    assert recorded(proxy) == ["expired"]
    event = Event.objects.of(proxy).get()
    assert (event.holder, event.fence) == ("crawler 7", grant.fence)
    assert "0 leases expired" in (sweep() or "")


def test_the_report_has_the_duration_if_the_acquisition_is_known() -> None:
    known, unknown = new(Proxy), new(Proxy)
    for row in (known, unknown):
        granted(row, "crawler 7")
        change(row, busy_before=DbLater(-40))
    Event.objects.create(
        at=DbLater(-100), what=EventKind.ACQUIRED, pool="resourcepool.proxy", row=str(known.pk), fence=1
    )
    sweep()
    assert recorded(known) == ["acquired", "expired"]
    assert recorded(unknown) == ["expired"]
    assert Event.objects.of(known).get(what=EventKind.EXPIRED).seconds == pytest.approx(60, abs=0.1)
    assert Event.objects.of(unknown).get().seconds is None


def test_a_job_whose_row_is_deleted_counts_as_taken_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tell = sweeping.report_alarms

    def deleted_before(lease: Any) -> int:
        Job.objects.all()._raw_delete("default")
        return tell(lease)

    monkeypatch.setattr(sweeping, "report_alarms", deleted_before)
    with pytest.raises(LeaseLost):
        sweep()


def test_live_leases_and_released_rows_are_unchanged() -> None:
    held, free = new(Proxy), new(Proxy)
    granted(held)
    before = [columns(row) for row in (held, free)]
    sweep()
    assert [columns(row) for row in (held, free)] == before


def test_an_overtaken_expired_lease_is_reported_once() -> None:
    proxy = new(Proxy)
    dead: Any = Proxy.pool.acquire(holder="dead")
    expire(proxy)
    following: Any = Proxy.pool.acquire(holder="next")
    assert recorded(proxy) == ["acquired", "acquired"]
    assert "1 of these since acquired by another holder" in (sweep() or "")
    assert recorded(proxy) == ["acquired", "acquired", "expired"]
    assert Event.objects.get(what=EventKind.EXPIRED).fence == dead.fence
    assert "0 of these since acquired by another holder" in (sweep() or "")
    following.release()


def test_a_lease_overtaken_by_an_ended_one_is_reported_once() -> None:
    """The next lease was so short that the history has only its end."""
    proxy = new(Proxy)
    dead: Any = Proxy.pool.acquire(holder="dead")
    assert recorded(proxy) == ["acquired"]
    expire(proxy)
    Proxy.pool.acquire(holder="next").release()
    assert recorded(proxy) == ["acquired", "released"]
    assert [report_overtaken(Proxy), report_overtaken(Proxy)] == [1, 0]
    assert Event.objects.get(what=EventKind.EXPIRED).fence == dead.fence


def test_a_released_short_lease_is_not_overtaken() -> None:
    proxy = new(Proxy)
    lease: Any = Proxy.pool.acquire()
    Proxy.pool.adopt(proxy.pk, lease.hand_over("the next one")).release()
    Proxy.pool.acquire().release()
    assert recorded(proxy) == ["handed_over", "released", "released"]
    assert Event.objects.filter(is_whole=True).count() == 3
    assert report_overtaken(Proxy) == 0


def test_an_acquisition_in_a_transaction_may_follow_a_release_so_nothing_is_reported() -> None:
    """Its fence is far ahead, and does not show whether there was a release before."""
    proxy = new(Proxy)
    _kept: Any = Proxy.pool.acquire(holder="released, but its event is late")
    change(proxy, busy_before=DbLater(-1), fence=F("fence") + 1, holder="")
    assert recorded(proxy) == ["acquired"]
    with transaction.atomic():
        lease: Any = Proxy.pool.acquire(allow_in_transaction=True)
    lease.release()
    assert report_overtaken(Proxy) == 0


def test_the_end_of_a_long_lease_is_not_an_acquisition() -> None:
    """Only an acquisition under the next fence shows that the row was leased again."""
    common = {"pool": "resourcepool.proxy", "row": "1"}
    Event.objects.create(at=DbLater(-5), what=EventKind.ACQUIRED, fence=1, **common)
    Event.objects.create(at=DbLater(-1), what=EventKind.RELEASED, fence=2, **common)
    assert report_overtaken(Proxy) == 0


def test_two_consecutive_sweeps_report_an_overtaken_lease_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A background thread writes the events, and may be late."""
    monkeypatch.setattr("resourcepool.history.recorder.EVERY", 600)
    proxy = new(Proxy)
    Proxy.pool.acquire(holder="dead")
    expire(proxy)
    following: Any = Proxy.pool.acquire(holder="next")
    assert report_overtaken(Proxy) == 1, "also what this process itself has not yet written"
    assert Event.objects.filter(what=EventKind.EXPIRED).count() == 1, "the next sweep may run elsewhere"
    assert report_overtaken(Proxy) == 0
    following.release()
    recorder.flush()


def test_releases_hand_overs_and_revocations_are_not_expiries() -> None:
    proxy = new(Proxy)
    Proxy.pool.acquire().release()
    lease: Any = Proxy.pool.acquire()
    Proxy.pool.adopt(proxy.pk, lease.hand_over("the next one"))
    Proxy.objects.revoke("stuck")
    Proxy.pool.acquire().release()
    assert "expired" not in recorded(proxy)
    sweep()
    assert "expired" not in recorded(proxy)


def test_due_resources_return_to_service() -> None:
    proxy = new(Proxy)
    Proxy.objects.drain("maintenance", duration=60)
    change(proxy, until=DbLater(-1))
    sweep()
    assert columns(proxy)["status"] == Status.IN_SERVICE


def test_a_pool_without_a_table_does_not_stop_the_sweep_of_others() -> None:
    proxy = new(Proxy)
    granted(proxy)
    expire(proxy)
    result = sweep() or ""
    assert "1 lease expired" in result
    assert "testapp.Ghost" in result


class TestStatistics:
    common: ClassVar[dict[str, Any]] = {"pool": "resourcepool.proxy", "row": "1"}

    def test_takes_one_sample_per_pool_and_minute(self) -> None:
        new(Proxy)
        new(Proxy, in_service=False, status=Status.OUT_OF_SERVICE)
        granted(new(Proxy))
        first = take_samples()
        assert first >= 1
        sample = Sample.objects.get(pool="resourcepool.proxy")
        assert (sample.free, sample.leased, sample.away) == (1, 1, 1)
        if take_samples():  # a minute has passed meanwhile
            assert Sample.objects.filter(pool="resourcepool.proxy").count() == 2
        assert "samples" in (refresh_statistics() or "")

    def test_counts_the_events_of_the_minute(self) -> None:
        happened = ((-60, "acquired", 7), (-60, "lost", 5), (-60, "expired", 6), (-600, "acquired", 4))
        for seconds, what, fence in happened:
            Event.objects.create(at=DbLater(seconds), what=what, fence=fence, **self.common)
        take_samples()
        sample = Sample.objects.get(pool="resourcepool.proxy")
        assert (sample.acquired, sample.lost) == (1, 2)

    def test_counts_an_acquisition_once_whatever_the_number_of_events(self) -> None:
        for what, fence, is_whole in (
            ("released", 1, True),
            ("quarantined", 3, True),
            ("acquired", 5, False),
            ("released", 5, False),
        ):
            Event.objects.create(at=DbLater(-60), what=what, fence=fence, is_whole=is_whole, **self.common)
        take_samples()
        assert Sample.objects.get(pool="resourcepool.proxy").acquired == 3

    @pytest.mark.parametrize(
        ("told", "counted"),
        [
            ([(-60, "lost"), (-60, "expired")], 1),
            ([(-60, "expired"), (-60, "lost")], 1),
            ([(-180, "lost"), (-60, "expired")], 0),  # in the sample of an earlier minute
            ([(-180, "released"), (-60, "expired")], 1),
        ],
    )
    def test_counts_the_end_of_a_lease_once(self, told: list[tuple[int, str]], counted: int) -> None:
        for seconds, what in told:
            Event.objects.create(at=DbLater(seconds), what=what, fence=3, **self.common)
        for others in ({"row": "2"}, {"fence": 4}, {"pool": "testapp.device"}):
            Event.objects.create(at=DbLater(-180), what="lost", **{**self.common, "fence": 3, **others})
        take_samples()
        assert Sample.objects.get(pool="resourcepool.proxy").lost == counted


class TestPruning:
    def test_removes_old_rows(self, settings: Any) -> None:
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY_KEPT": 3_600}
        for seconds in (-3_700, -3_500):
            Event.objects.create(at=DbLater(seconds), what="acquired", pool="resourcepool.proxy", row="1")
            Sample.objects.create(minute=DbLater(seconds), pool="resourcepool.proxy")
        assert prune() == "2 removed"
        assert (Event.objects.count(), Sample.objects.count()) == (1, 1)
        assert Job.objects.get(name="prune history").result == "2 removed"

    def test_removes_the_oldest_of_too_many_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("resourcepool.sweeps.pruning.history_rows", lambda: 3)
        new_ones = [Event(at=DbLater(0), what="acquired", pool="p", row=str(n)) for n in range(5)]
        Event.objects.bulk_create(new_ones)
        assert prune() == "2 removed"
        assert sorted(Event.objects.values_list("row", flat=True)) == ["2", "3", "4"]

    def test_removes_old_queue_moves(self, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY_KEPT": 3_600}
        monkeypatch.setattr("resourcepool.sweeps.pruning.history_rows", lambda: 3)
        for number, seconds in enumerate((-3_700, -30, -30, -30, -30)):
            about = {"queue_group": "orders", "queue_pk": number, "queue_id": str(number), "what": "assigned"}
            Move.objects.create(at=DbLater(seconds), generation=number, fence=1, **about)
        assert prune() == "2 removed"
        assert sorted(Move.objects.values_list("queue_id", flat=True)) == ["2", "3", "4"]

    @pytest.fixture
    def old(self) -> None:
        events = [Event(at=DbLater(-(10**8)), what="acquired", pool="p", row="1") for _ in range(5)]
        Event.objects.bulk_create(events)

    def test_removes_many_rows_in_batches(
        self, old: None, monkeypatch: pytest.MonkeyPatch, statements: list[Statement]
    ) -> None:
        monkeypatch.setattr("resourcepool.sweeps.pruning.BATCH", 2)
        assert prune() == "5 removed"
        removals = [one.sql for one in statements if one.sql.startswith("DELETE") and "event" in one.sql]
        assert [sql.count("%s") for sql in removals] == [2, 2, 1]

    def test_stops_when_the_job_is_lost(self, old: None, monkeypatch: pytest.MonkeyPatch) -> None:
        def lose() -> int:
            (lease,) = keeper.leases()
            lease._lose("stolen")
            return 0

        monkeypatch.setattr(sweeping, "prune_history", lose)
        monkeypatch.setattr(sweeping, "prune_finished", lambda: pytest.fail("the job is lost"))
        with pytest.raises(LeaseLost):
            prune()

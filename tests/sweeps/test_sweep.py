"""The sweep: what ran out is told, what is due comes back, and nothing else changes."""

from typing import Any, ClassVar

import pytest
from django.db import transaction
from django.db.models import F

from resourcepool.dialect import DbLater
from resourcepool.exceptions import LeaseLost
from resourcepool.history.recorder import recorder
from resourcepool.models import Event, Job, Move, Proxy, Sample
from resourcepool.resources.state import Status
from resourcepool.signals import EventKind
from resourcepool.sweeps import sweep as sweeping
from resourcepool.sweeps.pruning import prune_history
from resourcepool.sweeps.samples import take_samples
from resourcepool.sweeps.sweep import prune, refresh_statistics, report_overtaken, sweep
from tests.app.rows import change, columns, expire, granted, hold, new, steal
from tests.committed import Statement


@pytest.fixture(autouse=True)
def history(settings: Any) -> Any:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY": True}
    yield
    recorder._waiting.clear()
    for model in (Event, Sample):
        model.objects.all()._raw_delete("default")


def told(row: Any) -> list[str]:
    recorder.flush()
    return list(Event.objects.of(row).order_by("pk").values_list("what", flat=True))


def test_a_lease_that_ran_out_is_cleared_and_told_with_whose_it_was() -> None:
    proxy = new(Proxy)
    grant = granted(proxy, "crawler 7")
    expire(proxy)
    assert "1 lease ran out" in (sweep() or "")
    assert (columns(proxy)["holder"], columns(proxy)["fence"]) == ("", grant.fence + 1)
    assert told(proxy) == ["expired"]
    event = Event.objects.of(proxy).get()
    assert (event.holder, event.fence) == ("crawler 7", grant.fence)
    assert "0 leases ran out" in (sweep() or "")


def test_how_long_it_was_held_is_told_if_its_beginning_is_known_whenever_it_is_found() -> None:
    known, unknown = new(Proxy), new(Proxy)
    for row in (known, unknown):
        granted(row, "crawler 7")
        change(row, busy_before=DbLater(-40))
    Event.objects.create(
        at=DbLater(-100), what=EventKind.ACQUIRED, pool="resourcepool.proxy", row=str(known.pk), fence=1
    )
    sweep()
    assert told(known) == ["acquired", "expired"]
    assert told(unknown) == ["expired"]
    assert Event.objects.of(known).get(what=EventKind.EXPIRED).seconds == pytest.approx(60, abs=0.1)
    assert Event.objects.of(unknown).get().seconds is None


def test_a_job_whose_row_is_deleted_while_it_runs_is_one_that_was_taken_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tell = sweeping.report_alarms

    def deleted_before(lease: Any) -> int:
        Job.objects.all()._raw_delete("default")
        return tell(lease)

    monkeypatch.setattr(sweeping, "report_alarms", deleted_before)
    with pytest.raises(LeaseLost):
        sweep()


def test_running_leases_and_released_rows_are_left_alone() -> None:
    held, free = new(Proxy), new(Proxy)
    granted(held)
    before = [columns(row) for row in (held, free)]
    sweep()
    assert [columns(row) for row in (held, free)] == before


def test_a_lease_that_ran_out_and_was_overtaken_is_told_once() -> None:
    proxy = new(Proxy)
    dead: Any = Proxy.pool.acquire(holder="dead")
    expire(proxy)
    following: Any = Proxy.pool.acquire(holder="next")
    assert told(proxy) == ["acquired", "acquired"]
    assert "1 of these overtaken" in (sweep() or "")
    assert told(proxy) == ["acquired", "acquired", "expired"]
    assert Event.objects.get(what=EventKind.EXPIRED).fence == dead.fence
    assert "0 of these overtaken" in (sweep() or "")
    following.release()


def test_a_lease_that_was_overtaken_by_one_that_is_over_by_now_is_told_once() -> None:
    """The next lease was so short that the history has no acquisition of it, only its end."""
    proxy = new(Proxy)
    dead: Any = Proxy.pool.acquire(holder="dead")
    assert told(proxy) == ["acquired"]
    expire(proxy)
    Proxy.pool.acquire(holder="next").release()
    assert told(proxy) == ["acquired", "released"]
    assert [report_overtaken(Proxy), report_overtaken(Proxy)] == [1, 0]
    assert Event.objects.get(what=EventKind.EXPIRED).fence == dead.fence


def test_a_short_lease_was_overtaken_by_nobody() -> None:
    proxy = new(Proxy)
    lease: Any = Proxy.pool.acquire()
    Proxy.pool.adopt(proxy.pk, lease.hand_over("the next one")).release()
    Proxy.pool.acquire().release()
    assert told(proxy) == ["handed_over", "released", "released"]
    assert Event.objects.filter(is_whole=True).count() == 3
    assert report_overtaken(Proxy) == 0


def test_whoever_acquires_in_a_transaction_may_have_come_after_a_release_so_nothing_is_told() -> None:
    """Its fence is far ahead, and does not tell whether there was a release before."""
    proxy = new(Proxy)
    Proxy.pool.acquire(holder="released, but its event is late")
    change(proxy, busy_before=DbLater(-1), fence=F("fence") + 1, holder="")
    assert told(proxy) == ["acquired"]
    with transaction.atomic():
        lease: Any = Proxy.pool.acquire(allow_in_transaction=True)
    lease.release()
    assert report_overtaken(Proxy) == 0


def test_the_end_of_a_long_lease_is_no_acquisition_of_the_next_one() -> None:
    """Only then does an event under the next fence mean that somebody has acquired the row since."""
    common = {"pool": "resourcepool.proxy", "row": "1"}
    Event.objects.create(at=DbLater(-5), what=EventKind.ACQUIRED, fence=1, **common)
    Event.objects.create(at=DbLater(-1), what=EventKind.RELEASED, fence=2, **common)
    assert report_overtaken(Proxy) == 0


def test_a_lease_that_was_overtaken_is_told_once_by_two_sweeps_in_a_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is told is written by a thread of its own, which may be late."""
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


def test_a_release_a_hand_over_and_a_revocation_are_no_expiries() -> None:
    proxy = new(Proxy)
    Proxy.pool.acquire().release()
    lease: Any = Proxy.pool.acquire()
    Proxy.pool.adopt(proxy.pk, lease.hand_over("the next one"))
    Proxy.objects.revoke("stuck")
    Proxy.pool.acquire().release()
    assert "expired" not in told(proxy)
    sweep()
    assert "expired" not in told(proxy)


def test_what_was_away_until_now_is_back() -> None:
    proxy = new(Proxy)
    Proxy.objects.drain("maintenance", duration=60)
    change(proxy, until=DbLater(-1))
    sweep()
    assert columns(proxy)["status"] == Status.IN_SERVICE


def test_a_pool_without_a_table_does_not_keep_the_others_from_being_swept() -> None:
    proxy = new(Proxy)
    granted(proxy)
    expire(proxy)
    result = sweep() or ""
    assert "1 lease ran out" in result
    assert "testapp.Ghost" in result


class TestStatistics:
    common: ClassVar[dict[str, Any]] = {"pool": "resourcepool.proxy", "row": "1"}

    def test_one_sample_of_a_pool_a_minute(self) -> None:
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

    def test_counts_what_happened_in_that_minute(self) -> None:
        happened = ((-60, "acquired", 7), (-60, "lost", 5), (-60, "expired", 6), (-600, "acquired", 4))
        for seconds, what, fence in happened:
            Event.objects.create(at=DbLater(seconds), what=what, fence=fence, **self.common)
        take_samples()
        sample = Sample.objects.get(pool="resourcepool.proxy")
        assert (sample.acquired, sample.lost) == (1, 2)

    def test_counts_a_lease_as_acquired_once_however_many_events_tell_of_it(self) -> None:
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
    def test_a_lease_ends_once_however_many_notice(self, told: list[tuple[int, str]], counted: int) -> None:
        for seconds, what in told:
            Event.objects.create(at=DbLater(seconds), what=what, fence=3, **self.common)
        for others in ({"row": "2"}, {"fence": 4}, {"pool": "testapp.device"}):
            Event.objects.create(at=DbLater(-180), what="lost", **{**self.common, "fence": 3, **others})
        take_samples()
        assert Sample.objects.get(pool="resourcepool.proxy").lost == counted


class TestPruning:
    def test_removes_what_is_older_than_it_is_kept(self, settings: Any) -> None:
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY_KEPT": 3_600}
        for seconds in (-3_700, -3_500):
            Event.objects.create(at=DbLater(seconds), what="acquired", pool="resourcepool.proxy", row="1")
            Sample.objects.create(minute=DbLater(seconds), pool="resourcepool.proxy")
        assert prune() == "2 removed"
        assert (Event.objects.count(), Sample.objects.count()) == (1, 1)
        assert Job.objects.get(name="prune history").result == "2 removed"

    def test_of_too_many_the_oldest_go(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("resourcepool.sweeps.pruning.history_rows", lambda: 3)
        new_ones = [Event(at=DbLater(0), what="acquired", pool="p", row=str(n)) for n in range(5)]
        Event.objects.bulk_create(new_ones)
        assert prune() == "2 removed"
        assert sorted(Event.objects.values_list("row", flat=True)) == ["2", "3", "4"]

    def test_moves_of_queues_go_likewise(self, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
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

    def test_many_go_a_batch_at_a_time(
        self, old: None, monkeypatch: pytest.MonkeyPatch, statements: list[Statement]
    ) -> None:
        monkeypatch.setattr("resourcepool.sweeps.pruning.BATCH", 2)
        assert prune() == "5 removed"
        removals = [one.sql for one in statements if one.sql.startswith("DELETE") and "event" in one.sql]
        assert [sql.count("%s") for sql in removals] == [2, 2, 1]

    def test_who_has_lost_the_job_leaves_the_rest_to_whoever_has_it_now(self, old: None) -> None:
        job = new(Job)
        lease = hold(job)
        steal(job)
        with pytest.raises(LeaseLost):
            lease.renew()
        with pytest.raises(LeaseLost):
            prune_history(lease)
        assert Event.objects.count() == 5

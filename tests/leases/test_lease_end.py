"""The end of a handle: how it is noticed, reported, and cleaned up."""

import datetime
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from resourcepool.exceptions import BadOption, DatabaseUnavailable, LeaseLost, LeaseReleased
from resourcepool.leases import keeper as keeping, verbs
from resourcepool.leases.keeper import keeper
from resourcepool.models import Proxy
from tests.app.models import Bare
from tests.app.rows import busy_for, columns, hold, lasts, new, steal
from tests.committed import Clock
from tests.eventually import InBackground, eventually
from tests.leases.test_lease import unavailable


@pytest.fixture
def row() -> Any:
    return new(Bare)


class TestTrust:
    """Invariant 2: this process's own clock can only make it stop earlier."""

    def test_ends_a_margin_before_the_ttl(self, row: Any, process_clock: Clock) -> None:
        lease = hold(row, ttl=60)
        process_clock.ahead += 57.9
        lease.ensure_held()
        process_clock.ahead += 0.2
        assert not lease.is_held
        with pytest.raises(LeaseLost, match="not renewed within ttl=60 s"):
            lease.ensure_held()
        assert lease.lost.is_set()

    def test_does_not_come_back_with_a_late_confirmation(self, row: Any, process_clock: Clock) -> None:
        lease = hold(row, ttl=60)
        process_clock.ahead += 59
        with pytest.raises(LeaseLost):
            lease.ensure_held()
        lease._trust.confirm(process_clock())
        assert not lease.is_held
        with pytest.raises(LeaseLost):
            lease.renew()

    def test_an_older_confirmation_does_not_shorten_it(self, row: Any, process_clock: Clock) -> None:
        lease = hold(row)
        until = lease._trust.until
        lease._trust.confirm(process_clock() - 30)
        assert lease._trust.until == until


class TestLoss:
    """Invariant 5: a holder that lost its lease is told."""

    def test_runs_on_lost_once(self, row: Any) -> None:
        told: list[Any] = []
        lease = hold(row, on_lost=told.append)
        steal(row)
        for use in (lease.renew, lease.ensure_held, lease.release):
            with pytest.raises(LeaseLost):
                use()
        lease._lose("once more")
        eventually(lambda: told == [lease])

    def test_is_noticed_by_the_keeper_without_a_call(self, row: Any, process_clock: Clock) -> None:
        told = threading.Event()
        lease = hold(row, ttl=60, on_lost=lambda _: told.set())
        steal(row)
        process_clock.advance(21)
        assert lease.lost.wait(20)
        assert told.wait(20)
        assert not keeper.is_renewing(lease)

    def test_is_a_loss_all_the_same_when_on_lost_fails(
        self, row: Any, process_clock: Clock, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fails(_: Any) -> None:
            raise LookupError("the callback is broken")

        lease = hold(row, on_lost=fails)
        steal(row)
        process_clock.advance(21)
        assert lease.lost.wait(20)
        eventually(lambda: "the callback is broken" in caplog.text)
        assert keeper.is_alive()

    def test_does_not_run_on_lost_after_a_release(self, row: Any, process_clock: Clock) -> None:
        told: list[Any] = []
        lease = hold(row, on_lost=told.append)
        lease.release()
        steal(row)
        process_clock.advance(100)
        with pytest.raises(LeaseReleased):
            lease.renew()
        assert told == []
        assert not lease.lost.is_set()

    def test_is_logged_with_the_row_and_the_reason(self, row: Any, caplog: pytest.LogCaptureFixture) -> None:
        lease = hold(row)
        steal(row)
        with caplog.at_level(logging.WARNING, "resourcepool"), pytest.raises(LeaseLost):
            lease.renew()
        assert f"lease of testapp.Bare {row.pk}, fence 1 of me is lost: revoked" in caplog.text


class TestAsContextManager:
    def test_releases_at_the_end(self, row: Any) -> None:
        with hold(row) as lease:
            assert lease.is_held
        assert busy_for(row) <= 0

    def test_releases_when_the_block_fails(self, row: Any) -> None:
        with pytest.raises(LookupError), hold(row):
            raise LookupError
        assert busy_for(row) <= 0

    def test_may_be_released_inside(self, row: Any) -> None:
        with hold(row) as lease:
            lease.release()
        assert columns(row)["fence"] == 2

    def test_says_at_a_clean_end_that_it_was_lost_meanwhile(self, row: Any) -> None:
        with pytest.raises(LeaseLost), hold(row):
            steal(row)
        assert columns(row)["holder"] == "thief"

    def test_keeps_the_callers_own_error_when_it_was_lost_too(self, row: Any) -> None:
        with pytest.raises(LookupError), hold(row):
            steal(row)
            raise LookupError
        assert columns(row)["holder"] == "thief"

    def test_keeps_the_callers_own_error_when_it_cannot_be_released(
        self, row: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(verbs, "release", unavailable)
        with pytest.raises(LookupError), hold(row) as lease:
            raise LookupError
        assert not keeper.is_renewing(lease), "it lapses"

    def test_says_at_a_clean_end_that_it_could_not_be_released_and_lets_it_lapse(
        self, row: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(verbs, "release", unavailable)
        with pytest.raises(DatabaseUnavailable), hold(row) as lease:
            pass
        assert not keeper.is_renewing(lease)


class TestHandOver:
    def test_ends_the_lease_here_and_returns_the_successors_fence(self, row: Any) -> None:
        lease = hold(row, ttl=600)
        fence = lease.hand_over("the next process", ttl=datetime.timedelta(seconds=20))
        assert fence == lease.fence + 1
        assert (columns(row)["fence"], columns(row)["holder"]) == (fence, "the next process")
        assert lasts(row, 20)
        assert not keeper.is_renewing(lease)
        with pytest.raises(LeaseReleased, match="was handed over to the next process before"):
            lease.renew()

    def test_leaves_the_successor_the_same_ttl_unless_told_otherwise(self, row: Any) -> None:
        hold(row, ttl=600).hand_over("the next process")
        assert lasts(row, 600)

    def test_of_a_stolen_lease_is_a_loss_and_changes_nothing(self, row: Any) -> None:
        lease = hold(row)
        steal(row)
        before = columns(row)
        with pytest.raises(LeaseLost):
            lease.hand_over("the next process")
        assert columns(row) == before
        assert lease.lost.is_set()

    @pytest.mark.parametrize(
        ("to", "ttl", "wrong"),
        [("", 60, "to=''"), ("a\nb", 60, "to="), ("x", 0, "ttl=0"), ("x", "60", "ttl='60'")],
    )
    def test_with_a_bad_option_changes_nothing(self, row: Any, to: str, ttl: object, wrong: str) -> None:
        lease = hold(row)
        with pytest.raises(BadOption, match=wrong):
            lease.hand_over(to, ttl=ttl)
        lease.ensure_held()
        assert keeper.is_renewing(lease)


# ``fix()`` moves a handle to another row while a renewal of the old row is under way.


LASTS = 6.0  # seconds for which a row that was handed over is its waiter's, until it is renewed


def after(verb: Callable[..., Any], do: list[Callable[[], None]]) -> Callable[..., Any]:
    """Return ``verb``; the first time it has taken effect, ``do`` is done before anybody learns of it."""

    def slowly(*args: Any, **options: Any) -> Any:
        answer = verb(*args, **options)
        if do:
            do.pop()()
        return answer

    return slowly


def handed_over(lease: Any) -> Callable[[], None]:
    """Return what moves ``lease`` to another row, which is handed to it: for ``LASTS`` seconds, until it is renewed."""

    def move() -> None:
        InBackground(fix).result()

    def fix() -> None:
        lease.quarantine("bad")
        row = new(Proxy)
        grant = verbs.claim(connection, Proxy, row.pk, lease._terms)
        assert grant is not None
        other = Proxy.pool.handle("default", grant._replace(ttl=LASTS), lease._request)
        lease._become(other)

    return move


class TestAMovedHandle:
    def test_does_not_trust_its_new_row_for_longer_because_its_old_one_was_renewed_by_the_keeper(
        self, process_clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        new(Proxy)
        lease: Any = Proxy.pool.acquire(ttl=60)
        do = [handed_over(lease)]
        monkeypatch.setattr(verbs, "renew_unless_locked", after(verbs.renew_unless_locked, do))
        keeping.renew_together("default", [lease])
        assert not do
        assert lease.remaining <= LASTS

    def test_nor_by_another_thread(self, monkeypatch: pytest.MonkeyPatch) -> None:
        new(Proxy)
        lease: Any = Proxy.pool.acquire(ttl=60)
        monkeypatch.setattr(verbs, "renew", after(verbs.renew, [handed_over(lease)]))
        lease.renew()
        assert lease.remaining <= LASTS

    def test_is_not_lost_because_its_old_row_is(self, monkeypatch: pytest.MonkeyPatch) -> None:
        new(Proxy)
        lease: Any = Proxy.pool.acquire(ttl=60)
        do = [handed_over(lease)]
        monkeypatch.setattr(verbs, "live_fences", after(verbs.live_fences, do))
        monkeypatch.setattr(verbs, "renew_unless_locked", lambda *_: 0)
        keeping.renew_together("default", [lease])
        assert not do
        lease.ensure_held()

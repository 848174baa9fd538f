"""The duration of quarantines, and the use by the lease."""

import datetime
import logging
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import given, strategies as st

from resourcepool.db.dialect import DbLater
from resourcepool.exceptions import AcquireTimeout, BadOption, LeaseLost, LeaseReleased
from resourcepool.leases.keeper import keeper
from resourcepool.models import Proxy
from resourcepool.resources.state import next_strikes, quarantine_limits, quarantine_seconds
from tests.app.rows import busy_for, change, columns, expire, lasts, new, several, steal
from tests.committed import Clock
from tests.eventually import eventually

DAY = datetime.timedelta(days=1)
DEFAULT = (300, 86_400)


class TestDelay:
    @pytest.mark.parametrize(
        ("strikes", "seconds"), [(1, 300), (2, 600), (3, 1_200), (9, 76_800), (10, 86_400), (10_000, 86_400)]
    )
    def test_doubles_from_five_minutes_to_one_day(self, strikes: int, seconds: float) -> None:
        assert quarantine_seconds(strikes, *DEFAULT, chance=0) == seconds

    @pytest.mark.parametrize(("chance", "seconds"), [(0, 300), (0.5, 337.5), (1, 375)])
    def test_is_up_to_a_quarter_longer_by_chance(self, chance: float, seconds: float) -> None:
        assert quarantine_seconds(1, *DEFAULT, chance) == seconds

    def test_differs_from_one_to_the_next(self) -> None:
        assert len({quarantine_seconds(1, *DEFAULT) for _ in range(20)}) > 10

    @given(st.integers(1, 10**6), st.floats(0.001, 86_400), st.floats(1, 30), st.floats(0, 1))
    def test_is_never_shorter_than_the_first_nor_longer_than_the_cap(
        self, strikes: int, base: float, times: float, chance: float
    ) -> None:
        assert base <= quarantine_seconds(strikes, base, base * times, chance) <= base * times


class TestStrikes:
    NOW = datetime.datetime(2024, 5, 6, 7, 8, tzinfo=datetime.UTC)

    @pytest.mark.parametrize(
        ("strikes", "ago", "expected"),
        [
            (0, None, 1),
            (1, datetime.timedelta(minutes=10), 2),
            (7, DAY, 8),
            (7, DAY + datetime.timedelta(seconds=1), 1),
        ],
    )
    def test_count_on_unless_the_last_is_forgiven(
        self, strikes: int, ago: datetime.timedelta | None, expected: int
    ) -> None:
        last = None if ago is None else self.NOW - ago
        assert next_strikes(strikes, last, self.NOW) == expected


class TestPolicy:
    def test_comes_from_the_settings(self, settings: Any) -> None:
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "QUARANTINE": {"base": 10}}
        assert quarantine_limits() == (10, 86_400)

    @pytest.mark.parametrize(
        ("chosen", "wrong"),
        [
            ({"base": 0}, r"RESOURCEPOOL\['QUARANTINE'\]\['base'\]=0 is not allowed"),
            (
                {"base": 10, "cap": 5},
                r"RESOURCEPOOL\['QUARANTINE'\]\['cap'\]=5 is not allowed: it must be .* from 10 s to 30 days",
            ),
            ({"cap": "a day"}, "cap"),
            (300, r"RESOURCEPOOL\['QUARANTINE'\]: it must be a dict, not a int"),
        ],
    )
    def test_that_makes_no_sense_is_refused(self, settings: Any, chosen: Any, wrong: str) -> None:
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "QUARANTINE": chosen}
        with pytest.raises(BadOption, match=wrong):
            quarantine_limits()


class TestQuarantine:
    def test_parks_the_resource_with_reason_and_end(self) -> None:
        proxy = new(Proxy)
        lease = Proxy.pool.acquire()
        lease.quarantine("banned by shop.example")
        after = columns(proxy)
        assert (after["fence"], after["holder"], after["strikes"]) == (2, "", 1)
        assert (after["status"], after["reason"]) == ("quarantined", "banned by shop.example")
        assert 290 < busy_for(proxy) <= 375
        assert abs(after["until"] - after["busy_before"]) < datetime.timedelta(seconds=1)
        assert Proxy.pool.acquire(wait=False) is None
        assert set(Proxy.objects.quarantined()) == {proxy}

    def test_ends_the_lease(self) -> None:
        new(Proxy)
        lease = Proxy.pool.acquire()
        lease.quarantine("banned")
        assert not keeper.is_renewing(lease)
        with pytest.raises(LeaseReleased, match=r"was quarantined \(banned\) before"):
            lease.renew()

    def test_lasts_twice_as_long_each_time_in_a_row(self) -> None:
        proxy = new(Proxy)
        for least in (300, 600, 1_200):
            Proxy.pool.acquire().quarantine("banned")
            assert least - 10 < busy_for(proxy) <= 1.25 * least
            expire(proxy)

    def test_begins_anew_after_a_good_day(self) -> None:
        proxy = new(Proxy)
        change(proxy, strikes=5, struck_at=timezone.now() - datetime.timedelta(days=2))
        Proxy.pool.acquire().quarantine("banned")
        assert columns(proxy)["strikes"] == 1
        assert busy_for(proxy) <= 375

    def test_by_a_late_holder_changes_nothing(self) -> None:
        """The naive protocol quarantines by an unconditional save, and so may quarantine a successor's row."""
        proxy = new(Proxy)
        lease = Proxy.pool.acquire()
        steal(proxy)
        before = columns(proxy)
        with pytest.raises(LeaseLost) as caught:
            lease.quarantine("banned")
        assert not isinstance(caught.value, LeaseReleased)
        assert columns(proxy) == before

    def test_of_one_out_of_service_until_a_moment_does_not_keep_it_out_for_ever(self) -> None:
        proxy = new(Proxy)
        lease = Proxy.pool.acquire()
        Proxy.objects.drain("maintenance", duration=60)
        lease.quarantine("banned")
        assert columns(proxy)["status"] == "out_of_service"
        change(proxy, until=DbLater(-1), busy_before=DbLater(-1))
        assert Proxy.pool.acquire(timeout=3).pk == proxy.pk

    def test_of_a_retired_one_leaves_it_retired(self) -> None:
        proxy = new(Proxy)
        lease = Proxy.pool.acquire()
        Proxy.objects.retire("sold")
        lease.quarantine("banned")
        after = columns(proxy)
        assert (after["status"], after["in_service"], after["reason"]) == ("retired", False, "sold")


class TestFix:
    def test_quarantines_and_moves_the_handle_to_another(self) -> None:
        several(Proxy, 2)
        lease = Proxy.pool.acquire(ttl=50, cooldown=7)
        bad, fence = lease.resource, lease.fence
        lease.fix("banned by shop.example")
        assert lease.pk != bad.pk
        assert lease.resource.pk == lease.pk
        assert lease.resource.url != bad.url
        assert columns(bad)["reason"] == "banned by shop.example"
        assert columns(bad)["fence"] == fence + 1
        lease.ensure_held()
        lease.renew()
        assert keeper.is_renewing(lease)
        assert keeper.leases().count(lease) == len(keeper.leases())
        assert (lease._terms.ttl, lease._terms.cooldown) == (50, 7)
        lease.release()
        assert lasts(lease.resource, 7)

    def test_asks_for_the_same_again(self) -> None:
        several(Proxy, 2, country="US")
        several(Proxy, 2, country="DE")
        lease = Proxy.pool.acquire(country="US", holder="crawler 7", strategy="random")
        lease.fix("banned")
        assert (lease.resource.country, lease.holder) == ("US", "crawler 7")
        assert columns(lease.resource)["holder"] == "crawler 7"
        with pytest.raises(AcquireTimeout, match="US"):
            lease.fix("banned as well", timeout=0.02)

    def test_without_another_one_leaves_the_handle_released(self) -> None:
        proxy = new(Proxy)
        lease = Proxy.pool.acquire()
        with pytest.raises(AcquireTimeout):
            lease.fix("banned", timeout=0.02)
        assert columns(proxy)["status"] == "quarantined"
        assert not keeper.is_renewing(lease)
        with pytest.raises(LeaseReleased):
            lease.ensure_held()

    def test_logs_how_long_it_may_wait_for_another(self, caplog: pytest.LogCaptureFixture) -> None:
        several(Proxy, 2)
        lease, first = Proxy.pool.acquire(timeout=7), "quarantined; waiting up to %s s for another resource"
        with caplog.at_level(logging.INFO, "resourcepool.resources"):
            lease.fix("banned")
            assert first % 7 in caplog.text
            with pytest.raises(AcquireTimeout):
                lease.fix("banned, too", timeout=0.02)
        assert first % 0.02 in caplog.text

    def test_of_a_lost_lease_is_a_loss_and_takes_nothing(self) -> None:
        proxy, free = several(Proxy, 2)
        lease = Proxy.pool.acquire(host=proxy.host)
        steal(proxy)
        before = columns(proxy), columns(free)
        with pytest.raises(LeaseLost):
            lease.fix("banned")
        assert (columns(proxy), columns(free)) == before

    def test_gives_a_lease_whose_loss_is_told_as_well(self, process_clock: Clock) -> None:
        told: list[Any] = []
        several(Proxy, 2)
        lease = Proxy.pool.acquire(ttl=60, on_lost=told.append)
        lease.fix("banned")
        assert not lease.lost.is_set()
        steal(lease.resource)
        process_clock.advance(25)
        assert lease.lost.wait(20)
        eventually(lambda: told == [lease])

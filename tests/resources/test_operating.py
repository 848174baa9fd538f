"""Operations on resources: revoke, reserve, quarantine; and their events."""

import itertools
import threading
from typing import Any

import pytest
from django.db import connection, transaction

from resourcepool.db.dialect import DbNow
from resourcepool.exceptions import BadOption, LeaseLost
from resourcepool.leases import verbs
from resourcepool.models import Proxy
from resourcepool.resources import queryset
from resourcepool.resources.state import State, state_of
from resourcepool.signals import EventKind, RowEvent
from tests.app.rows import busy_for, columns, expire, granted, new, steal
from tests.committed import Clock
from tests.eventually import InBackground
from tests.resources.sent_signals import events

__all__ = ["events"]


@pytest.fixture
def proxy() -> Any:
    return new(Proxy)


def steal_and_release(row: Any) -> None:
    grant = steal(row)
    assert verbs.release(connection, Proxy, row.pk, grant.fence, 0.0)


def state(row: Any) -> State:
    found = Proxy.objects.annotate(now=DbNow()).get(pk=row.pk)
    return state_of(found, found.now)


class TestFree:
    def test_frees_the_row_and_raises_its_fence(self, proxy: Any) -> None:
        lease: Any = Proxy.pool.acquire()
        assert Proxy.objects.revoke("stuck since noon", actor="alice") == 1
        assert (columns(proxy)["fence"], columns(proxy)["holder"]) == (lease.fence + 1, "")
        assert Proxy.pool.acquire(wait=False).pk == proxy.pk

    def test_the_holder_is_told_within_a_beat(self, proxy: Any, process_clock: Clock) -> None:
        told = threading.Event()
        lease: Any = Proxy.pool.acquire(ttl=120, on_lost=lambda _: told.set())
        Proxy.objects.revoke("stuck")
        process_clock.advance(41)  # a third of the ttl, and a moment
        assert told.wait(60), "though its lease would end by itself later"
        with pytest.raises(LeaseLost):
            lease.ensure_held()

    def test_of_what_nobody_holds_does_nothing(self, proxy: Any) -> None:
        expired = new(Proxy, holder="dead", fence=3)
        expire(expired)
        assert Proxy.objects.revoke("clean up") == 0
        assert columns(expired)["holder"] == "dead"

    def test_says_whose_lease_it_was_and_who_took_it(self, proxy: Any, events: list[RowEvent]) -> None:
        lease: Any = Proxy.pool.acquire(holder="crawler")
        Proxy.objects.revoke("stuck", actor="alice")
        (event,) = [event for event in events if event.kind == EventKind.REVOKED]
        assert (event.pk, event.fence, event.holder, event.reason, event.actor) == (
            *(proxy.pk, lease.fence, "crawler", "stuck", "alice"),
        )

    def test_spares_and_does_not_tell_of_who_came_next_meanwhile(
        self, events: list[RowEvent], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one, other = new(Proxy), new(Proxy)
        for row in (one, other):
            granted(row, "crawler")
        end = queryset.end_leases

        def meanwhile(*arguments: Any, **options: Any) -> Any:
            steal(other, "next")
            return end(*arguments, **options)

        monkeypatch.setattr(queryset, "end_leases", meanwhile)
        assert Proxy.objects.revoke("stuck") == 1
        assert columns(other)["holder"] == "next"
        assert [event.pk for event in events if event.kind == EventKind.REVOKED] == [one.pk]

    def test_waits_for_the_commit_of_a_guarded_transaction(self, proxy: Any) -> None:
        if connection.vendor == "sqlite":
            pytest.skip("one writer at a time")
        lease: Any = Proxy.pool.acquire()
        with transaction.atomic(), lease.guard():
            freeing = InBackground(lambda: Proxy.objects.revoke("stuck"))
            assert columns(proxy)["fence"] == lease.fence
        assert freeing.result() == 1

    @pytest.mark.parametrize("reason", ["", "x" * 201, "two\nlines"])
    def test_refuses_a_wrong_reason(self, proxy: Any, reason: str) -> None:
        Proxy.pool.acquire()
        with pytest.raises(BadOption, match="reason"):
            Proxy.objects.revoke(reason)
        assert columns(proxy)["holder"] != ""


class TestQuarantine:
    def test_of_a_held_one_whose_holder_finds_it_bad_too_keeps_its_end(self, proxy: Any) -> None:
        lease: Any = Proxy.pool.acquire()
        Proxy.objects.quarantine("banned", 6_000)
        until = columns(proxy)["until"]
        lease.quarantine("403")
        assert (columns(proxy)["until"], columns(proxy)["reason"]) == (until, "banned")
        assert state(proxy) == State.QUARANTINED

    def test_of_a_held_one_can_be_given_another_end(self, proxy: Any) -> None:
        lease: Any = Proxy.pool.acquire()
        Proxy.objects.quarantine("banned", 600)
        assert Proxy.objects.quarantine("banned for long", 6_000) == 1
        lease.release()
        assert Proxy.objects.quarantine("banned for longer", 9_000) == 1
        assert state(proxy) == State.QUARANTINED
        assert 8_900 < busy_for(proxy) <= 9_000
        assert Proxy.objects.return_to_service() == 1
        assert state(proxy) == State.FREE

    @pytest.mark.parametrize("statement", range(1, 4))
    @pytest.mark.parametrize("begins", [False, True])
    def test_puts_it_away_also_when_a_lease_begins_or_ends_meanwhile(
        self, proxy: Any, events: list[RowEvent], statement: int, begins: bool
    ) -> None:
        before = Proxy.pool.acquire()
        if begins:
            before.release()
        sent = itertools.count(1)

        def meanwhile(execute: Any, *asked: Any) -> Any:
            if Proxy._meta.db_table in asked[0] and next(sent) == statement:
                granted(proxy) if begins else steal_and_release(proxy)
            return execute(*asked)

        with connection.execute_wrapper(meanwhile):
            assert Proxy.objects.quarantine("banned", 600, actor="alice") == 1
        assert Proxy.pool.acquire(wait=False) is None
        assert state(proxy) in (State.DRAINING, State.QUARANTINED)
        assert [event.actor for event in events if event.kind is EventKind.QUARANTINED] == ["alice"]

    def test_whose_lease_had_run_out_is_parked(self, proxy: Any) -> None:
        late: Any = Proxy.pool.acquire()
        expire(proxy)
        Proxy.objects.quarantine("banned", 600)
        assert state(proxy) == State.QUARANTINED
        assert (columns(proxy)["fence"], columns(proxy)["holder"]) == (late.fence + 1, "")

    def test_of_one_that_cools_down_lasts_as_long_as_was_said(self, proxy: Any) -> None:
        Proxy.pool.acquire(cooldown=50).release()
        Proxy.objects.quarantine("banned", 600)
        assert 590 < busy_for(proxy) <= 600

    def test_leaves_what_is_out_of_service_as_it_is(self, proxy: Any) -> None:
        Proxy.objects.drain("sold")
        assert Proxy.objects.quarantine("banned", 600) == 0
        assert columns(proxy)["reason"] == "sold"

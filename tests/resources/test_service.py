"""In and out of service: an operator's changes never touch a running lease."""

from typing import Any

import pytest

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.exceptions import BadOption
from resourcepool.models import Proxy
from resourcepool.resources.state import State, Status, state_of
from tests.app.models import Device
from tests.app.rows import busy_for, change, columns, expire, lasts, new
from tests.eventually import InBackground, eventually


@pytest.fixture
def proxy() -> Any:
    return new(Proxy)


def state(row: Any) -> State:
    found = Proxy.objects.annotate(now=DbNow()).get(pk=row.pk)
    return state_of(found, found.now)


TAKEN_OUT: dict[str, tuple[Any, State, str]] = {
    "drain": (lambda rows, **more: rows.drain("broken", **more), State.OUT, "broken"),
    "reserve": (lambda rows, **more: rows.reserve("ann", "tests", **more), State.RESERVED, "ann: tests"),
    "retire": (lambda rows: rows.retire("sold"), State.RETIRED, "sold"),
    "quarantine": (lambda rows, duration=600: rows.quarantine("banned", duration), State.QUARANTINED, "banned"),
}


class TestTakingOut:
    @pytest.mark.parametrize("name", TAKEN_OUT)
    def test_hands_it_out_no_more_until_it_is_returned(self, proxy: Any, name: str) -> None:
        act, after, reason = TAKEN_OUT[name]
        assert act(Proxy.objects) == 1
        assert Proxy.pool.acquire(wait=False) is None
        assert (state(proxy), columns(proxy)["reason"]) == (after, reason)
        assert Proxy.objects.return_due() == 0
        assert Proxy.objects.return_to_service() == 1
        assert (state(proxy), columns(proxy)["reason"]) == (State.FREE, "")
        assert Proxy.pool.acquire(wait=False) is not None

    @pytest.mark.parametrize("name", TAKEN_OUT)
    def test_of_a_held_one_lets_its_lease_end_first(self, proxy: Any, name: str) -> None:
        act, after, _reason = TAKEN_OUT[name]
        lease = Proxy.pool.acquire(cooldown=50)
        assert act(Proxy.objects) == 1
        assert state(proxy) == State.DRAINING
        assert set(Proxy.objects.draining()) == {proxy}
        until = columns(proxy)["until"]
        lease.renew()
        lease.ensure_held()
        lease.release()
        assert (state(proxy), columns(proxy)["until"]) == (after, until)
        assert set(Proxy.objects.quarantined()) == ({proxy} if name == "quarantine" else set())
        assert not Proxy.objects.draining().exists()
        assert Proxy.pool.acquire(wait=False) is None

    @pytest.mark.parametrize("waits", [True, False])
    @pytest.mark.parametrize("name", ["drain", "reserve", "quarantine"])
    def test_for_a_while_comes_back_by_itself(self, proxy: Any, name: str, waits: bool) -> None:
        lease = Proxy.pool.acquire()
        TAKEN_OUT[name][0](Proxy.objects, duration=600)
        lease.release()
        assert Proxy.pool.acquire(wait=False) is None
        waiter = InBackground(lambda: Proxy.pool.acquire(timeout=10)) if waits else None
        change(proxy, until=DbLater(-0.001))
        got = waiter.result() if waiter else eventually(lambda: Proxy.pool.acquire(wait=False))
        assert got.pk == proxy.pk
        row = columns(proxy)
        assert (row["in_service"], row["status"], row["reason"]) == (True, Status.IN_SERVICE, "")

    @pytest.mark.parametrize(
        ("reason", "duration"), [("x" * 201, None), ("", None), ("broken", -1), ("broken", "1 h")]
    )
    def test_refuses_a_wrong_reason_or_duration(self, proxy: Any, reason: str, duration: Any) -> None:
        with pytest.raises(BadOption):
            Proxy.objects.drain(reason, duration=duration)
        assert columns(proxy)["in_service"]


class TestReturn:
    def test_of_one_taken_out_during_its_quarantine_ends_both(self, proxy: Any) -> None:
        Proxy.pool.acquire().quarantine("bad")
        Proxy.objects.drain("broken")
        assert Proxy.objects.return_to_service() == 1
        assert state(proxy) == State.FREE

    def test_of_one_that_was_only_switched_off(self, proxy: Any) -> None:
        change(proxy, in_service=False)
        assert Proxy.objects.return_to_service() == 1
        assert state(proxy) == State.FREE

    def test_ends_a_quarantine_and_forgets_the_strikes(self, proxy: Any) -> None:
        Proxy.pool.acquire().quarantine("banned")
        fence = columns(proxy)["fence"]
        assert state(proxy) == State.QUARANTINED
        assert Proxy.objects.return_to_service() == 1
        after = columns(proxy)
        assert (after["strikes"], after["fence"]) == (0, fence + 1)
        assert Proxy.pool.acquire(wait=False) is not None

    def test_ends_a_drain_and_the_lease_goes_on(self, proxy: Any) -> None:
        lease = Proxy.pool.acquire()
        Proxy.objects.drain("broken")
        Proxy.objects.return_to_service()
        assert state(proxy) == State.LEASED
        lease.renew()
        assert lasts(proxy, 60)
        lease.release()
        assert state(proxy) == State.FREE

    def test_does_not_cut_a_cool_down_or_a_lease_short(self, proxy: Any) -> None:
        Proxy.pool.acquire(cooldown=50).release()
        before = columns(proxy)
        assert Proxy.objects.return_to_service() == 0
        assert columns(proxy) == before


class TestASavedCopy:
    def test_that_is_stale_does_not_undo_what_an_operator_decided(self, proxy: Any) -> None:
        stale = Proxy.objects.get(pk=proxy.pk)
        Proxy.objects.retire()
        stale.notes = "slow on Sundays"
        stale.save()
        after = columns(proxy)
        assert (after["in_service"], after["status"], after["notes"]) == (
            False,
            Status.RETIRED,
            "slow on Sundays",
        )

    def test_writes_what_was_changed_in_it(self, proxy: Any) -> None:
        copy = Proxy.objects.get(pk=proxy.pk)
        copy.in_service = False
        copy.save()
        assert not columns(proxy)["in_service"]
        copy.refresh_from_db()
        copy.in_service = True
        copy.save()
        assert columns(proxy)["in_service"]

    @pytest.mark.parametrize(
        "create",
        [
            lambda: Proxy.objects.create(host="fresh", port=1),
            lambda: Device.objects.bulk_create([Device(name="fresh")])[0],
        ],
        ids=["alone", "in bulk"],
    )
    def test_writes_what_was_changed_since_it_was_created(self, create: Any) -> None:
        row = create()
        row.in_service = False
        row.save()
        assert not columns(row)["in_service"]

    def test_writes_a_change_once(self, proxy: Any) -> None:
        """After saving, it becomes outdated like any other copy."""
        for copy in (Proxy.objects.get(pk=proxy.pk), Proxy.objects.create(host="fresh", port=1)):
            copy.in_service = False
            copy.save()
            Proxy.objects.return_to_service()
            copy.notes = "something else"
            copy.save()
            assert columns(copy)["in_service"]

    def test_writes_later_what_was_not_named_before(self, proxy: Any) -> None:
        copy = Proxy.objects.get(pk=proxy.pk)
        copy.in_service = False
        copy.save(update_fields=["notes"])
        assert columns(proxy)["in_service"]
        copy.save()
        assert not columns(proxy)["in_service"]

    def test_writes_what_was_changed_before_something_else_was_read(self, proxy: Any) -> None:
        for rows in (Proxy.objects.all(), Proxy.objects.defer("notes")):
            copy = rows.get(pk=proxy.pk)
            copy.in_service = not copy.in_service
            copy.refresh_from_db(fields=["host"])
            assert copy.notes == ""
            copy.save()
            assert columns(proxy)["in_service"] == copy.in_service

    def test_writes_what_is_named(self, proxy: Any) -> None:
        proxy.refresh_from_db()
        Proxy.objects.drain("broken")
        proxy.save(update_fields=["in_service"])
        assert columns(proxy)["in_service"]


class TestState:
    def test_of_a_lease_a_cool_down_and_a_free_one(self, proxy: Any) -> None:
        assert state(proxy) == State.FREE
        lease = Proxy.pool.acquire(cooldown=50)
        assert state(proxy) == State.LEASED
        lease.release()
        assert state(proxy) == State.COOLING
        expire(proxy)
        assert state(proxy) == State.FREE

    def test_a_quarantine_long_over_does_not_colour_what_comes_later(self, proxy: Any) -> None:
        Proxy.pool.acquire().quarantine("banned")
        change(proxy, busy_before=DbLater(-1), until=DbLater(-1))
        lease = Proxy.pool.acquire(cooldown=50)
        assert state(proxy) == State.LEASED
        lease.release()
        assert state(proxy) == State.COOLING
        assert not Proxy.objects.quarantined().exists()
        before = busy_for(proxy)
        Proxy.objects.return_to_service()
        assert busy_for(proxy) == pytest.approx(before, abs=1)


class TestDelete:
    def test_of_a_free_one_deletes_it(self, proxy: Any) -> None:
        assert proxy.delete() == (1, {"resourcepool.Proxy": 1})
        assert not Proxy.objects.exists()

    def test_of_a_held_one_makes_it_a_lame_duck(self, proxy: Any) -> None:
        lease = Proxy.pool.acquire()
        assert Proxy.objects.get(pk=proxy.pk).delete() == (0, {})
        lease.renew()
        lease.ensure_held()
        assert state(proxy) == State.DRAINING
        lease.release()
        assert state(proxy) == State.RETIRED
        assert Proxy.pool.acquire(wait=False) is None
        proxy.delete()
        assert not Proxy.objects.exists()

    def test_of_one_whose_lease_has_expired_deletes_it(self, proxy: Any) -> None:
        Proxy.pool.acquire()
        expire(proxy)
        proxy.delete()
        assert not Proxy.objects.exists()

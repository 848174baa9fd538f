"""Why a resource can or cannot be leased."""

from types import SimpleNamespace
from typing import Any

import pytest

from resourcepool.db.dialect import DbLater
from resourcepool.history.recorder import recorder
from resourcepool.models import Event, Proxy
from resourcepool.resources.state import State, Status
from resourcepool.status.resources import why
from tests import running
from tests.app.models import Device
from tests.app.rows import expire, hold, new


def one(
    state: State, *, holder: str = "", reason: str = "bad", back_in: float | None = None, status: str = ""
) -> why.ResourceExplanation:
    row: Any = SimpleNamespace(pk=7, holder=holder, reason=reason, strikes=3, status=status)
    return why.ResourceExplanation("app.Thing", row, state, None, 150.0, back_in, None, [])


@pytest.mark.parametrize(
    ("resource", "said"),
    [
        (one(State.FREE), "It is free: the next matching request may lease it."),
        (one(State.FREE, holder="dead one"), "its last lease, of dead one, expired without a release"),
        (one(State.LEASED, holder="me"), "It is leased until the holder releases it"),
        (one(State.COOLING), "It is cooling down after its last lease: 2 min left."),
        (one(State.QUARANTINED), "It is quarantined for another 2 min: bad (strikes: 3)."),
        (
            one(State.DRAINING, back_in=60),
            "It goes out of service when its lease ends: bad. It returns to service in 60 s.",
        ),
        (
            one(State.DRAINING, reason="alice: tests", status=Status.RESERVED),
            "It will be reserved when its lease ends: alice: tests. Return it with",
        ),
        (
            one(State.DRAINING, back_in=7_200, status=Status.QUARANTINED),
            "It will be quarantined when its lease ends: bad. It returns to service in 2 h.",
        ),
        (one(State.DRAINING, status=Status.RETIRED), "It will be retired when its lease ends: bad."),
        (one(State.QUARANTINED, back_in=7_200), "It is quarantined for another 2 h: bad (strikes: 3)."),
        (one(State.RESERVED, back_in=7_200), "It is reserved: bad. It returns to service in 2 h."),
        (one(State.RETIRED), "It is retired: bad."),
        (one(State.OUT, reason=""), "It is out of service: no reason given."),
        (one(State.OUT), "Return it with `manage.py resourcepool_drain app.Thing 7 --back`."),
    ],
)
def test_each_state_is_explained(resource: why.ResourceExplanation, said: str) -> None:
    assert said in resource.explanation


class TestAResource:
    def test_that_is_held_for_another_ttl_than_its_pool_s(self, settings: Any) -> None:
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY": True}
        device = new(Device)
        lease: Any = Device.pool.acquire(ttl=15)
        try:
            recorder.flush()
            found = why.resource(device).lease
            assert found is not None
            assert found.renewal is not None
            assert found.renewal.every == 5
            assert found.renewal.ago == pytest.approx(15 - found.expires_in)
        finally:
            lease.release()
            recorder.flush()
            Event.objects.all().delete()

    def test_whose_lease_ran_out(self) -> None:
        proxy = new(Proxy)
        hold(proxy, holder="dead one")
        expire(proxy)
        found = why.resource(proxy)
        assert (found.state, found.lease, found.busy_for) == (State.FREE, None, 0.0)
        assert "dead one" in found.explanation

    def test_that_is_quarantined_and_was_checked(self) -> None:
        proxy = new(Proxy, checked_at=DbLater(-90), verdict="bad")
        Proxy.objects.filter(pk=proxy.pk).quarantine("banned", 600)
        found = why.resource(proxy)
        assert found.state is State.QUARANTINED
        assert 599 - running.seconds() < (found.back_in or 0) < 600.001  # times are rounded
        assert 89 < (found.checked or 0) < 150

    def test_that_drains_still_has_its_holder(self) -> None:
        proxy = new(Proxy, in_service=False, status=Status.OUT_OF_SERVICE, reason="cable")
        Proxy.objects.filter(pk=proxy.pk).update(busy_before=DbLater(30), holder="me")
        found = why.resource(proxy)
        assert found.state is State.DRAINING
        assert found.lease is not None

    def test_knows_how_its_last_leases_ended_and_no_other_s(self) -> None:
        proxy = new(Proxy)
        for fence in range(1, 9):
            for what in ("acquired", "released"):
                Event.objects.create(
                    at=DbLater(fence), what=what, pool="resourcepool.proxy", row=str(proxy.pk), fence=fence
                )
        Event.objects.create(
            at=DbLater(99), what="released", pool="testapp.device", row=str(proxy.pk), fence=99
        )
        try:
            assert [(event.what, event.fence) for event in why.endings(proxy)] == [
                ("released", fence) for fence in (8, 7, 6, 5, 4)
            ]
        finally:
            Event.objects.all().delete()

    def test_counts_no_quarantine_that_an_operator_put_it_in_as_the_end_of_a_lease(self) -> None:
        proxy = new(Proxy)
        about = {"what": "quarantined", "pool": "resourcepool.proxy", "row": str(proxy.pk)}
        Event.objects.create(at=DbLater(1), fence=1, holder="crawler", **about)
        Event.objects.create(at=DbLater(2), fence=2, actor="ann", **about)
        try:
            assert [event.fence for event in why.endings(proxy)] == [1]
        finally:
            Event.objects.all().delete()

    def test_that_was_deleted_meanwhile(self) -> None:
        proxy = new(Proxy)
        Proxy.objects.filter(pk=proxy.pk)._raw_delete("default")
        with pytest.raises(Proxy.DoesNotExist):
            why.resource(proxy)


def test_a_holder_has_leases_and_places_in_every_pool() -> None:
    from resourcepool.resources.registry import resource_models
    from tests.waiting.threads import ticket

    hold(new(Proxy), holder="me")
    hold(new(Device), holder="me")
    hold(new(Proxy), holder="me too")
    ticket(Proxy, holder="me")
    found = why.holder("me", resource_models())
    assert [type(held.row) for held in found.leases] == [Proxy, Device]
    assert len(found.waits) == 1
    assert why.holder("nobody", resource_models()).leases == []

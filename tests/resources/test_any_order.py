"""A pool behaves like its model, with any order of calls of several clients and any lost reply."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import DatabaseError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from resourcepool.db.dialect import MicrosUntil
from resourcepool.exceptions import (
    ClaimInTransaction,
    GuardOutsideTransaction,
    LeaseLost,
    LeaseReleased,
)
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from resourcepool.leases.lease import Lease
from resourcepool.leases.renewal import renew_together
from resourcepool.leases.terms import Terms
from resourcepool.models import Proxy
from tests.app.models import Team
from tests.app.rows import expire, several, wanted
from tests.committed import Clock
from tests.resources.clients import CAN_LOSE, Clients
from tests.resources.model import ActiveLease, Thing
from tests.state_machines import check

TTL = 1_000.0  # seconds: no lease expires or needs a renewal during the test
a_client = st.sampled_from([0, 1])
a_lost_reply = st.sampled_from([False, False, True]) if CAN_LOSE else st.just(False)
a_cooldown = st.sampled_from([0.0, TTL])
the_data = st.data()


class APool(RuleBasedStateMachine):
    """Three rows, two clients with a connection each, and all handles."""

    connections: tuple[BaseDatabaseWrapper, ...] = ()
    clock: Clock

    def __init__(self) -> None:
        super().__init__()
        # The memory of the pool decides which rows it tries first, so it must not depend on earlier examples.
        vars(Proxy.pool).pop("last_held", None)
        Proxy.pool._last_seen._free.clear()
        self.things = [Thing(row) for row in several(Proxy, 3)]
        self.active_leases: list[ActiveLease] = []
        self.over: list[Any] = []
        self.handed_over: list[tuple[Thing, int]] = []
        self.granted: set[tuple[int, int]] = set()
        self.written: list[str] = []
        self.names = itertools.count(1)
        self.clients = Clients(self.connections)

    # Getting

    @rule(client=a_client, count=st.sampled_from([1, 1, 2, 3]), cooldown=a_cooldown, loses=a_lost_reply)
    def acquire(self, client: int, count: int, cooldown: float, loses: bool) -> None:
        free = [thing for thing in self.things if thing.is_free]
        with self.clients.playing(client, loses=loses):
            leases = Proxy.pool.acquire_many(count, wait=False, ttl=TTL, cooldown=cooldown)
        if len(free) < count:
            assert leases is None
            return
        assert leases is not None
        assert len({lease.pk for lease in leases}) == count
        for lease in leases:
            thing = self._thing(lease.pk)
            assert thing in free
            self._keep(lease, thing, thing.pass_on(lease.holder))
            self._note_grant(thing)

    @rule(data=the_data, client=a_client, count=st.sampled_from([1, 2]), loses=a_lost_reply)
    def claim(self, data: st.DataObject, client: int, count: int, loses: bool) -> None:
        """The bare verbs, for these rows."""
        things = data.draw(st.permutations(self.things))[:count]
        pks = [thing.row.pk for thing in things]
        order = wanted(f"holder {next(self.names)}", TTL, holder_is_unique=True)
        with self.clients.playing(client, loses=loses) as own:
            if count == 1:
                grant = verbs.claim(own, Proxy, pks[0], order)
                grants = None if grant is None else [grant]
            else:
                grants = verbs.claim_all(own, Proxy, pks, order)
        assert (grants is not None) == all(thing.is_free for thing in things)
        for grant in grants or ():
            lease = Lease(Proxy, "default", grant, Terms(ttl=TTL, holder=order.holder))
            thing = self._thing(grant.pk)
            self._keep(lease, thing, thing.pass_on(order.holder))
            self._note_grant(thing)

    @rule(client=a_client, loses=a_lost_reply)
    @precondition(lambda self: self.handed_over)
    def adopt(self, client: int, loses: bool) -> None:
        thing, fence = self.handed_over.pop(0)
        with self.clients.playing(client, loses=loses):
            if thing.fence == fence and thing.is_busy:
                lease = Proxy.pool.adopt(thing.row.pk, fence, ttl=TTL)
                self._keep(lease, thing, thing.pass_on(lease.holder))
                self._note_grant(thing)
            else:
                with pytest.raises(LeaseLost):
                    Proxy.pool.adopt(thing.row.pk, fence, ttl=TTL)

    # Holding

    @rule(data=the_data, client=a_client, loses=a_lost_reply)
    @precondition(lambda self: self.active_leases)
    def renew(self, data: st.DataObject, client: int, loses: bool) -> None:
        one = data.draw(st.sampled_from(self.active_leases))
        with self.clients.playing(client, loses=loses), self._told_unless(one, one.is_live):
            one.lease.renew()

    @rule(data=the_data, client=a_client, loses=a_lost_reply)
    @precondition(lambda self: self.active_leases)
    def beat(self, data: st.DataObject, client: int, loses: bool) -> None:
        """A renewal by the keeper, of some leases of this process."""
        usable = [one for one in self.active_leases if one.is_usable]
        batch = [one for one in usable if data.draw(st.booleans())]
        if batch:
            with self.clients.playing(client, loses=loses):
                assert renew_together("default", [one.lease for one in batch])
        for one in batch:
            one.is_told = not one.is_live

    @rule(data=the_data, client=a_client, commits=st.booleans(), loses=a_lost_reply)
    @precondition(lambda self: self.active_leases)
    def guard(self, data: st.DataObject, client: int, commits: bool, loses: bool) -> None:
        one = data.draw(st.sampled_from(self.active_leases))
        name = f"{one.lease.pk} under {one.fence}"

        def work() -> None:
            with transaction.atomic():
                Team.objects.create(name=name)
                with one.lease.guard():
                    if not commits:
                        transaction.set_rollback(True)

        with self.clients.playing(client):
            if loses and one.is_usable:
                with self.clients.losing_a_reply(loses), pytest.raises(DatabaseError):
                    work()
                return
            with self._told_unless(one, one.is_live):
                work()
                self.written += [name] if commits else []

    @rule(data=the_data)
    @precondition(lambda self: self.active_leases)
    def what_is_refused(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.active_leases))
        with pytest.raises(ClaimInTransaction), transaction.atomic():
            Proxy.pool.acquire(wait=False)
        one.is_told = one.is_told or not one.is_trusted
        with pytest.raises(LeaseLost if one.is_told else GuardOutsideTransaction), one.lease.guard():
            pass

    # Giving up

    @rule(data=the_data, client=a_client, loses=a_lost_reply)
    @precondition(lambda self: self.active_leases)
    def release(self, data: st.DataObject, client: int, loses: bool) -> None:
        one = data.draw(st.sampled_from(self.active_leases))
        # Of a lost reply the row tells; or that nobody else can have claimed it yet, as far as this process knows:
        # then it may be the release that handed it on.
        looks_so = one.is_trusted or (one.thing.fence, one.thing.holder) == (one.fence + 1, "")
        done = one.is_current or (loses and looks_so)
        with self.clients.playing(client, loses=loses):
            self._end(one, one.lease.release, told=one.is_told or not done)
        if one.is_current:
            one.thing.pass_on("", is_busy=one.lease._terms.cooldown > 0)

    @rule(data=the_data, client=a_client, loses=a_lost_reply)
    @precondition(lambda self: self.active_leases)
    def quarantine(self, data: st.DataObject, client: int, loses: bool) -> None:
        resources = [one for one in self.active_leases if one.is_resource]
        if not resources:
            return
        one = data.draw(st.sampled_from(resources))
        done = one.is_usable and one.is_current
        with self.clients.playing(client, loses=loses):
            self._end(one, lambda: one.lease.quarantine("banned"), told=not done)
        if done:
            one.thing.park()

    @rule(data=the_data, client=a_client, loses=a_lost_reply)
    @precondition(lambda self: self.active_leases)
    def hand_over(self, data: st.DataObject, client: int, loses: bool) -> None:
        one = data.draw(st.sampled_from(self.active_leases))
        done, heir = one.is_usable and one.is_current, f"heir {next(self.names)}"
        with self.clients.playing(client, loses=loses):
            fence = self._end(one, lambda: one.lease.hand_over(heir, ttl=TTL), told=not done)
        if done:
            assert fence == one.thing.pass_on(heir)
            self._note_grant(one.thing)
            self.handed_over.append((one.thing, fence))

    @rule(data=the_data)
    @precondition(lambda self: self.over)
    def use_what_was_given_up(self, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from(self.over))
        with pytest.raises(LeaseReleased):
            data.draw(st.sampled_from([lease.renew, lease.release, lease.ensure_held]))()

    # What others do, and time

    @rule(data=the_data, is_out=st.booleans())
    def operate(self, data: st.DataObject, is_out: bool) -> None:
        thing = data.draw(st.sampled_from(self.things))
        rows = Proxy.objects.filter(pk=thing.row.pk)
        if is_out:
            rows.drain("upkeep")
            thing.drain()
        else:
            rows.return_to_service()
            thing.return_to_service()

    @rule(data=the_data)
    @precondition(lambda self: any(thing.is_busy for thing in self.things))
    def time_passes(self, data: st.DataObject) -> None:
        thing = data.draw(st.sampled_from([thing for thing in self.things if thing.is_busy]))
        expire(thing.row)
        thing.is_busy = False

    @rule()
    @precondition(lambda self: self.active_leases)
    def this_process_stands_still(self) -> None:
        """Leases are not renewed, and expire by the clock of the process."""
        for lease in keeper.leases():
            keeper.remove(lease)
        self.clock.ahead += TTL - 1
        for one in self.active_leases:
            one.is_trusted = False

    # What must be true after each of these

    @invariant()
    def the_rows_are_as_they_should_be(self) -> None:
        until = MicrosUntil("busy_before")
        found = {
            pk: (fence, micros > 0, bool(holder), in_service, status)
            for pk, fence, micros, holder, in_service, status in Proxy._base_manager.values_list(
                "pk", "fence", until, "holder", "in_service", "status"
            )
        }
        assert found == {thing.row.pk: thing.state() for thing in self.things}

    @invariant()
    def handles_know_what_they_can_know(self) -> None:
        for one in self.active_leases:
            assert one.lease.is_held == one.is_usable
            assert one.lease.lost.is_set() == one.is_told
        assert not any(lease.is_held for lease in self.over)

    @invariant()
    def nothing_was_written_but_under_guard(self) -> None:
        assert sorted(Team.objects.values_list("name", flat=True)) == sorted(self.written)

    def teardown(self) -> None:
        self.clients.close()
        for lease in keeper.leases():
            keeper.remove(lease)
        Proxy._base_manager.all()._raw_delete("default")
        Team._base_manager.all()._raw_delete("default")

    def _thing(self, pk: int) -> Thing:
        return next(thing for thing in self.things if thing.row.pk == pk)

    def _keep(self, lease: Any, thing: Thing, fence: int) -> None:
        assert lease.fence == fence
        self.active_leases.append(ActiveLease(lease, thing, fence))

    def _note_grant(self, thing: Thing) -> None:
        assert (thing.row.pk, thing.fence) not in self.granted
        self.granted.add((thing.row.pk, thing.fence))

    def _end(self, one: ActiveLease, end: Callable[[], Any], *, told: bool) -> Any:
        self.active_leases.remove(one)
        if told:
            with pytest.raises(LeaseLost):
                end()
            assert one.lease.lost.is_set()
            return None
        self.over.append(one.lease)
        return end()

    @contextlib.contextmanager
    def _told_unless(self, one: ActiveLease, is_live: bool) -> Iterator[None]:
        if one.is_usable and is_live:
            yield
        else:
            one.is_told = True
            with pytest.raises(LeaseLost):
                yield


@pytest.mark.timeout(1_200)  # the long form takes minutes
def test_a_pool_is_never_anything_else(
    other: BaseDatabaseWrapper, process_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Proxy.pool._last_seen, "seconds", 1e9)  # slow examples are allowed
    both = (connections["default"], other)
    check(type("APool", (APool,), {"connections": both, "clock": process_clock}), steps=50)

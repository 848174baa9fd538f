"""Whatever threads and processes try in whatever order: a semaphore behaves like its model."""

import contextlib
from typing import Any

import pytest
from django.db import connection
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from resourcepool.db.dialect import DbLater
from resourcepool.exceptions import BadOption, LeaseLost, NotHeld
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from resourcepool.leases.terms import Terms
from resourcepool.locks import Semaphore, permits, release_all
from resourcepool.locks.base import UNUSED_AFTER
from resourcepool.locks.permits import PermitLease
from resourcepool.locks.registry import holds
from resourcepool.models import SemaphorePermit
from resourcepool.sweeps.pruning import remove_unused_names
from tests.app.rows import expire, steal
from tests.state_machines import check

TTL = 1_000.0
FAR = "far/1/x/0a1b2c3d.1@1"  # another process
a_number = st.integers(1, 4)
the_data = st.data()


class ASemaphore(RuleBasedStateMachine):
    """Three permits at first, this process, and others whose rows are changed as they would change them.

    Attributes:
        value: how many there should be.
        mine: holds of which something is left, perhaps only what was lost; theirs: {key: fence} of other processes.
    """

    def __init__(self) -> None:
        super().__init__()
        SemaphorePermit.objects.all().delete()
        holds.forget()
        for lease in keeper.unreleased():  # of the last example
            keeper.remove(lease)
        for memory in (permits.counted, permits.recently_released._free):
            memory.clear()
        self.seats = Semaphore("seats", 3, ttl=TTL)
        self.value = 3
        self.mine: list[Any] = []
        self.theirs: dict[str, int] = {}
        self.fences: dict[str, int] = {}

    @rule(n=a_number, tries=st.booleans())
    def acquire(self, n: int, tries: bool) -> None:
        free = self._free()
        try:
            hold = self.seats.acquire(blocking=False, n=n) if tries else self.seats.acquire(timeout=0, n=n)
        except BadOption:
            assert n > max(self.value, 1)
            return
        assert (hold is not None) == (n <= free)
        if hold is not None:
            assert len({lease.pk for lease in hold.leases}) == n
            assert not {lease.pk for lease in hold.leases} & (self._keys() | self.theirs.keys())
            self.mine.append(hold)

    @rule(n=a_number)
    def release(self, n: int) -> None:
        there = sum(len(hold.leases) for hold in self.mine)
        before = self._held()
        if n > there:
            with pytest.raises(NotHeld, match=f"holds {there}"):
                self.seats.release(n)
            assert self._held() == before
            return
        with contextlib.suppress(LeaseLost):
            self.seats.release(n)
            assert self._held() == before - n
        self._look()

    @precondition(lambda self: self.mine)
    @rule(data=the_data)
    def release_one_hold(self, data: st.DataObject) -> None:
        hold = data.draw(st.sampled_from(self.mine))
        with contextlib.suppress(LeaseLost):
            hold.release()
        assert not any(lease.is_held for lease in hold.leases)
        self._look()

    @rule(n=st.integers(0, 5))
    def resize(self, n: int) -> None:
        held = self._held()
        assert self.seats.resize(n) == max(0, held - n)
        self.value = n

    @precondition(lambda self: SemaphorePermit.objects.available().exists())
    @rule()
    def another_process_takes_one(self) -> None:
        pk = SemaphorePermit.objects.available().order_by("pk").values_list("pk", flat=True)[0]
        grant = verbs.claim(connection, SemaphorePermit, pk, Terms(TTL, FAR))
        assert grant is not None
        self.theirs[pk] = grant.fence

    @precondition(lambda self: self.theirs)
    @rule(data=the_data, dies=st.booleans())
    def another_process_ends(self, data: st.DataObject, dies: bool) -> None:
        pk = data.draw(st.sampled_from(sorted(self.theirs)))
        fence = self.theirs.pop(pk)
        if dies:
            expire(SemaphorePermit.objects.get(pk=pk))
        else:
            assert verbs.release(connection, SemaphorePermit, pk, fence, 0.0)

    @precondition(lambda self: self.theirs)
    @rule()
    def everything_of_another_process_is_released(self) -> None:
        assert release_all("0a1b2c3d") == len(self.theirs)
        self.theirs.clear()

    @precondition(lambda self: self._keys())
    @rule(data=the_data, is_taken=st.booleans())
    def one_is_lost(self, data: st.DataObject, is_taken: bool) -> None:
        row = SemaphorePermit.objects.get(pk=data.draw(st.sampled_from(sorted(self._keys()))))
        if is_taken and row.in_service:  # nobody else can take one that a resize took out of service
            self.theirs[row.pk] = steal(row, FAR).fence
        else:
            expire(row)
        for hold in self.mine:
            for lease in hold.leases:
                if lease.pk == row.pk and lease.is_held:
                    try:
                        lease.renew()
                    except LeaseLost:
                        continue
                    raise AssertionError("it was not noticed")

    @precondition(lambda self: self.mine)
    @rule()
    def everything_here_is_released(self) -> None:
        mine = len(self._keys())
        assert release_all() == mine
        self.mine.clear()

    @precondition(lambda self: not self._held() and not self.mine)
    @rule()
    def it_is_not_used_for_long(self) -> None:
        SemaphorePermit.objects.update(busy_before=DbLater(-UNUSED_AFTER - 1))
        was_resized = SemaphorePermit.objects.filter(in_service=False).exists()
        there = SemaphorePermit.objects.count()
        assert remove_unused_names() == (0 if was_resized else there)
        if not was_resized:
            self.value = 3
            permits.recently_released._free.clear()

    @invariant()
    def the_counts_are_right(self) -> None:
        assert self.seats.value == self.value
        assert sum(holder.permits for holder in self.seats.holders()) == self._held()
        assert self.seats.available() == self._free()

    @invariant()
    def no_permit_is_granted_beyond_the_value(self) -> None:
        held = list(SemaphorePermit.objects.held().values_list("pk", "fence", "in_service"))
        assert sum(in_service for *_, in_service in held) <= self.value
        assert {(lease.pk, lease.fence) for lease in self._leases()} <= {(pk, fence) for pk, fence, _ in held}

    @invariant()
    def no_fence_goes_back(self) -> None:
        for pk, fence in SemaphorePermit.objects.values_list("pk", "fence"):
            assert fence >= self.fences.get(pk, 0)
            self.fences[pk] = fence

    def _look(self) -> None:
        """Forget the holds that were given back."""
        kept = {id(hold) for each in holds._all.values() for hold in each}
        self.mine = [hold for hold in self.mine if id(hold) in kept]

    def _leases(self) -> list[PermitLease]:
        return [lease for hold in self.mine for lease in hold.leases if lease.is_held]

    def _keys(self) -> set[str]:
        return {lease.pk for lease in self._leases()}

    def _held(self) -> int:
        return len(self._leases()) + len(self.theirs)

    def _free(self) -> int:
        """How many are free, by the database: the invariants compare what it counts with the model."""
        free = SemaphorePermit.objects.available().count()
        return free if free or SemaphorePermit.objects.exists() else 3


def test_a_semaphore_behaves_like_its_model() -> None:
    check(ASemaphore)

"""Acquiring: number of statements, and use in transactions."""

import contextlib
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import TestCase
from django.test.utils import CaptureQueriesContext

from resourcepool.exceptions import AcquireTimeout, ClaimInTransaction, LeaseLost
from resourcepool.models import Proxy
from resourcepool.resources.source import FRESH_SECONDS
from tests.aliases import alias
from tests.app.models import Team
from tests.app.rows import columns, expire, hold, new, several
from tests.committed import Clock


class TestStatements:
    """An acquire is a search and a claim; a holder that returns to its last row needs no search."""

    @pytest.fixture(autouse=True)
    def _rows(self) -> None:
        several(Proxy, 5)
        Proxy.pool.acquire(strategy="sticky").release()
        Proxy.pool._last_seen._free.clear()

    def count(self, **options: Any) -> tuple[int, int]:
        with CaptureQueriesContext(connection) as acquire:
            lease = Proxy.pool.acquire(**options)
        with CaptureQueriesContext(connection) as release:
            lease.release()
        return len(acquire), len(release)

    def test_what_was_free_a_moment_ago_is_claimed_without_a_look(self, process_clock: Clock) -> None:
        process_clock.stop()
        assert [self.count() for _ in range(6)] == [(2, 1), *[(1, 1)] * 4, (2, 1)], "each of the five once"
        process_clock.advance(FRESH_SECONDS)
        assert self.count() == (2, 1), "that was too long ago"

    def test_what_was_taken_since_costs_two_claims_and_a_look(self) -> None:
        lease: Any = Proxy.pool.acquire()
        others = [hold(other) for other in Proxy.objects.exclude(pk=lease.pk)[:3]]
        assert self.count()[0] <= 2 + 2, "two claims in vain, a look, and a claim"
        for one in (lease, *others):
            one.release()

    def test_a_selector_takes_no_more(self) -> None:
        new(Proxy, country="US", tags="fast")
        assert self.count(country="US", tag="fast") == (2, 1)

    def test_the_first_sticky_one_searches(self) -> None:
        assert self.count(strategy="sticky", holder="nobody yet") == (2, 1)
        assert self.count(strategy="sticky", holder="nobody yet") == (1, 1)


class TestInTransaction:
    def test_is_refused_with_what_to_do_instead(self) -> None:
        proxy = new(Proxy)
        for acquire in (Proxy.pool.acquire, lambda **o: Proxy.pool.acquire_many(1, **o)):
            for options in ({}, {"wait": False}, {"timeout": 0}):
                with (
                    pytest.raises(
                        ClaimInTransaction, match=r"Acquire before transaction.atomic\(\).*ATOMIC_REQUESTS"
                    ),
                    transaction.atomic(),
                ):
                    acquire(**options)
        assert columns(proxy)["fence"] == 0

    def test_is_refused_when_autocommit_is_off(self) -> None:
        new(Proxy)
        transaction.set_autocommit(False)
        try:
            with pytest.raises(ClaimInTransaction):
                Proxy.pool.acquire()
        finally:
            transaction.rollback()
            transaction.set_autocommit(True)

    def test_is_refused_where_the_settings_turn_autocommit_off_before_anything_was_asked(self) -> None:
        new(Proxy)
        with alias("manual", AUTOCOMMIT=False), pytest.raises(ClaimInTransaction):
            Proxy.pool.acquire(wait=False)

    def test_is_allowed_by_name(self) -> None:
        proxy = new(Proxy)
        with transaction.atomic():
            lease = Proxy.pool.acquire(allow_in_transaction=True)
            Team.objects.create(name="together")
        lease.ensure_held()
        assert columns(proxy)["fence"] == lease.fence
        lease.release()

    def test_allowed_by_name_does_not_wait_for_what_it_could_not_see(self) -> None:
        with pytest.raises(AcquireTimeout), transaction.atomic():
            Proxy.pool.acquire(allow_in_transaction=True, timeout=30)

    def test_allowed_by_name_it_is_refused_inside_a_savepoint(self) -> None:
        """Only the savepoint may roll back: the row would be free although the handle is trusted."""
        proxy = new(Proxy)
        with transaction.atomic():
            with pytest.raises(ClaimInTransaction, match="savepoint"), transaction.atomic():
                Proxy.pool.acquire(allow_in_transaction=True)
            Team.objects.create(name="stays")
        assert columns(proxy)["fence"] == 0

    def test_allowed_by_name_it_is_allowed_in_a_block_without_a_savepoint(self) -> None:
        new(Proxy)
        with transaction.atomic(), transaction.atomic(savepoint=False):
            lease = Proxy.pool.acquire(allow_in_transaction=True)
        lease.release()

    @pytest.mark.parametrize(
        "block", [contextlib.nullcontext, transaction.atomic, partial(transaction.atomic, savepoint=False)]
    )
    def test_allowed_by_name_it_is_refused_in_a_transaction_begun_by_hand(self, block: Any) -> None:
        """A rollback or commit would go unnoticed; an inner block does not commit."""
        proxy = new(Proxy)
        transaction.set_autocommit(False)
        try:
            with pytest.raises(ClaimInTransaction, match="autocommit is off"), block():
                Proxy.pool.acquire(allow_in_transaction=True, wait=False)
        finally:
            transaction.rollback()
            transaction.set_autocommit(True)
        assert columns(proxy)["fence"] == 0

    def test_a_rollback_undoes_it_and_the_handle_notices(self) -> None:
        proxy = new(Proxy)
        with pytest.raises(LookupError), transaction.atomic():
            lease = Proxy.pool.acquire(allow_in_transaction=True)
            raise LookupError
        assert columns(proxy)["fence"] == 0
        with pytest.raises(LeaseLost):
            lease.renew()

    @pytest.mark.parametrize("count", [1, 2])
    @pytest.mark.parametrize("is_next_in_transaction", [False, True])
    def test_what_a_rollback_undoes_is_not_taken_for_the_next_grant(
        self, count: int, *, is_next_in_transaction: bool
    ) -> None:
        several(Proxy, count)
        acquire = partial(Proxy.pool.acquire_many, count, wait=False)
        with pytest.raises(LookupError), transaction.atomic():
            undone: Any = acquire(allow_in_transaction=True)
            raise LookupError
        with transaction.atomic() if is_next_in_transaction else contextlib.nullcontext():
            leases: Any = acquire(allow_in_transaction=is_next_in_transaction)
        for one in undone:
            with pytest.raises(LeaseLost):
                one.release()
        for lease in leases:
            lease.renew()
            lease.release()

    @pytest.mark.parametrize("in_atomic", [True, False])
    def test_the_fence_of_a_hand_over_that_is_undone_adopts_no_later_grant(self, in_atomic: bool) -> None:
        proxy = new(Proxy)
        lease: Any = Proxy.pool.acquire(timeout=5)
        transaction.set_autocommit(in_atomic)
        with pytest.raises(LookupError), transaction.atomic() if in_atomic else contextlib.nullcontext():
            fence = lease.hand_over("next")
            assert columns(proxy)["fence"] == fence
            raise LookupError
        if not in_atomic:
            transaction.rollback()
            transaction.set_autocommit(True)
        expire(proxy)
        later: Any = Proxy.pool.acquire(timeout=5)
        with pytest.raises(LeaseLost):
            Proxy.pool.adopt(proxy.pk, fence)
        later.renew()
        later.release()

    def test_an_adoption_that_is_undone_is_not_taken_for_the_next_one(self) -> None:
        proxy = new(Proxy)
        lease: Any = Proxy.pool.acquire(timeout=5)
        fence = lease.hand_over("next")
        with pytest.raises(LookupError), transaction.atomic():
            undone = Proxy.pool.adopt(proxy.pk, fence, allow_in_transaction=True)
            raise LookupError
        adopted = Proxy.pool.adopt(proxy.pk, fence)
        with pytest.raises(LeaseLost):
            undone.release()
        adopted.renew()
        adopted.release()


class InTestCase(TestCase):
    """The transaction of Django's TestCase does not count as the caller's."""

    def test_acquiring_is_allowed(self) -> None:
        new(Proxy)
        with Proxy.pool.lease(timeout=1) as lease:
            lease.renew()
            with transaction.atomic(), lease.guard():
                Team.objects.create(name="guarded")

    def test_acquiring_inside_an_atomic_block_of_its_own_is_allowed_by_name(self) -> None:
        new(Proxy)
        with transaction.atomic():
            lease = Proxy.pool.acquire(wait=False, allow_in_transaction=True)
            with pytest.raises(ClaimInTransaction, match="savepoint"), transaction.atomic():
                Proxy.pool.acquire(wait=False, allow_in_transaction=True)
        lease.release()

    def test_acquiring_inside_an_atomic_block_of_its_own_is_refused(self) -> None:
        with pytest.raises(ClaimInTransaction), transaction.atomic():
            Proxy.pool.acquire(wait=False)

    def test_waiting_gives_up_at_once(self) -> None:
        with pytest.raises(AcquireTimeout):
            Proxy.pool.acquire(timeout=30)

"""Lost replies: the database server has executed a statement, but the client cannot know.

Every verb then checks the row, instead of assuming success or failure.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import transaction

from resourcepool.exceptions import LeaseLost
from resourcepool.leases.keeper import keeper
from resourcepool.leases.renewal import renew_together
from resourcepool.models import Proxy
from tests.app.models import Bare, Team
from tests.app.rows import columns, hold, lasts, new, several, steal
from tests.committed import Clock
from tests.concurrency.connection_cutter import Wire, wired

pytestmark = pytest.mark.only("mysql", "postgresql")  # SQLite has no server that could answer


@pytest.fixture
def wire() -> Iterator[Wire]:
    with wired() as (wire, _):
        Team.objects.count()  # connects
        yield wire
        assert wire.cuts == wire.asked


class TestAcquire:
    def test_the_row_is_used_and_not_leaked(self, wire: Wire) -> None:
        row = new(Proxy)
        wire.cut_after("UPDATE")
        lease: Any = Proxy.pool.acquire(wait=False)
        assert (lease.pk, lease.fence) == (row.pk, 1)
        lease.renew()
        lease.release()
        assert columns(row)["fence"] == 2

    def test_a_row_held_by_another_process_is_not_taken_as_ours(self, wire: Wire) -> None:
        row = new(Proxy)
        wire.cut_after("UPDATE", meanwhile=lambda: steal(row))
        assert Proxy.pool.acquire(wait=False) is None
        assert (columns(row)["fence"], columns(row)["holder"]) == (2, "thief")

    def test_a_claim_under_a_shared_holder_name_is_not_assumed(self, wire: Wire) -> None:
        """Two crawlers may both be called "crawler": the claim is left to expire, and another row is claimed."""
        several(Proxy, 2)
        wire.cut_after("UPDATE")
        lease: Any = Proxy.pool.acquire(wait=False, holder="crawler")
        assert Proxy.objects.held_by("crawler").count() == 2
        assert lease.fence == 1
        lease.ensure_held()

    def test_many_rows_are_used_and_not_leaked(self, wire: Wire) -> None:
        several(Proxy, 3)
        wire.cut_after("COMMIT")
        leases: Any = Proxy.pool.acquire_many(3, wait=False)
        assert [lease.fence for lease in leases] == [1, 1, 1]
        for lease in leases:
            lease.release()

    def test_many_rows_without_a_commit_are_claimed_again(self, wire: Wire) -> None:
        several(Proxy, 3)
        wire.cut_after("UPDATE")  # inside the transaction: the server rolls it back
        leases: Any = Proxy.pool.acquire_many(3, wait=False)
        assert [lease.fence for lease in leases] == [1, 1, 1]


class TestRenew:
    def test_of_many_at_once_by_the_keeper_loses_none(self, wire: Wire) -> None:
        leases = [hold(row) for row in several(Bare, 5)]
        sent = [lease._trust.sent_at for lease in leases]
        wire.cut_after("UPDATE")
        assert renew_together("default", leases)
        assert not any(lease.lost.is_set() for lease in leases)
        assert all(lease._trust.sent_at > before for lease, before in zip(leases, sent, strict=True))

    def test_inside_guard_the_callers_transaction_fails_and_nothing_is_written(self, wire: Wire) -> None:
        lease: Any = hold(new(Bare))
        wire.cut_after("UPDATE")
        with (
            pytest.raises(Exception, match=r"(?i)lost connection|server closed|gone away"),
            transaction.atomic(),
        ):
            Team.objects.create(name="not to be seen")
            with lease.guard():
                pass
        assert Team.objects.count() == 0
        lease.renew()


class TestQuarantine:
    def test_of_a_row_leased_again_after_expiry_meanwhile_is_a_loss(
        self, wire: Wire, process_clock: Clock
    ) -> None:
        row = new(Proxy)
        lease: Any = Proxy.pool.acquire(wait=False)
        steal(row)
        before = columns(row)

        def ttl_passes() -> None:
            process_clock.ahead += lease._terms.ttl

        wire.cut_after("SELECT", meanwhile=ttl_passes)
        with pytest.raises(LeaseLost):
            lease.quarantine("banned")
        assert columns(row) == before


VERBS: dict[str, tuple[Callable[[Any], object], dict[str, Any]]] = {
    "renew": (lambda lease: lease.renew(), {"fence": 1, "strikes": 0}),
    "release": (lambda lease: lease.release(), {"fence": 2, "holder": ""}),
    "quarantine": (
        lambda lease: lease.quarantine("banned"),
        {"fence": 2, "status": "quarantined", "strikes": 1},
    ),
    "hand over": (lambda lease: lease.hand_over("the next one"), {"fence": 2, "holder": "the next one"}),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_takes_effect_once_and_is_not_reported_as_a_loss(wire: Wire, verb: str) -> None:
    row, (do, expected) = new(Proxy), VERBS[verb]
    lease: Any = Proxy.pool.acquire(wait=False, ttl=30)
    wire.cut_after("UPDATE")
    do(lease)
    assert not lease.lost.is_set()
    assert columns(row).items() >= expected.items()
    assert (lease.is_held, lasts(row, 30)) == (verb == "renew", verb in ("renew", "hand over"))


class TestAdopt:
    @pytest.fixture
    def handed_over(self, wire: Wire) -> tuple[Any, int]:
        row = new(Proxy)
        lease: Any = Proxy.pool.acquire(wait=False)
        return row, lease.hand_over("the next one")

    def test_is_not_reported_as_a_loss(self, wire: Wire, handed_over: tuple[Any, int]) -> None:
        row, fence = handed_over
        wire.cut_after("UPDATE")
        lease = Proxy.pool.adopt(row.pk, fence)
        assert columns(row)["fence"] == lease.fence == fence + 1
        lease.release()

    def test_of_a_row_held_by_another_process_is_a_loss(self, wire: Wire, handed_over: tuple[Any, int]) -> None:
        row, fence = handed_over
        wire.cut_after("UPDATE", meanwhile=lambda: steal(row))
        with pytest.raises(LeaseLost):
            Proxy.pool.adopt(row.pk, fence)
        assert columns(row)["holder"] == "thief"

    def test_under_a_shared_name_is_not_assumed(self, wire: Wire, handed_over: tuple[Any, int]) -> None:
        """Two successors may both be called "crawler": the grant is left to expire."""
        row, fence = handed_over
        wire.cut_after("UPDATE")
        with pytest.raises(LeaseLost):
            Proxy.pool.adopt(row.pk, fence, holder="crawler")
        assert columns(row)["holder"] == "crawler"
        assert keeper.leases() == []

"""The methods of the handle, and when they raise."""

import contextlib
from typing import Any

import pytest
from django.db import connection, transaction

from resourcepool.db.dialect import DbLater
from resourcepool.exceptions import DatabaseUnavailable, LeaseLost, LeaseReleased
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from resourcepool.leases.lease import Lease
from resourcepool.leases.terms import Terms, margin
from resourcepool.models import Proxy
from tests.app.models import Bare
from tests.app.rows import busy_for, change, columns, expire, granted, hold, lasts, new, steal
from tests.committed import Clock


@pytest.fixture
def row() -> Any:
    return new(Bare)


class TestHolding:
    def test_a_fresh_lease_is_held_and_kept(self, row: Any) -> None:
        lease = hold(row, ttl=60, holder="me")
        lease.ensure_held()
        assert lease.is_held
        assert not lease.lost.is_set()
        assert keeper.is_renewing(lease)
        assert (lease.pk, lease.fence, lease.holder) == (row.pk, 1, "me")

    def test_it_trusts_itself_for_less_than_the_ttl(self, row: Any) -> None:
        assert 60 - margin(60) - 1 < hold(row, ttl=60).remaining <= 60 - margin(60)

    @pytest.mark.parametrize(
        ("ttl", "seconds"), [(0.1, 0.01), (1, 0.1), (10, 1), (20, 2), (60, 2), (86_400, 2)]
    )
    def test_the_margin_is_a_tenth_of_the_ttl_and_at_most_two_seconds(self, ttl: float, seconds: float) -> None:
        assert margin(ttl) == pytest.approx(seconds)

    def test_it_trusts_itself_from_when_the_claim_was_sent_not_from_its_reply(
        self, row: Any, process_clock: Clock
    ) -> None:
        grant = granted(row, ttl=60)
        process_clock.advance(59)  # the reply took this long
        lease = Lease(Bare, "default", grant, Terms(ttl=60, holder="me"))
        with pytest.raises(LeaseLost):
            lease.ensure_held()

    def test_text_about_it_names_row_and_fence(self, row: Any) -> None:
        lease = hold(row)
        assert str(lease) == f"lease of testapp.Bare {row.pk}, fence 1"
        assert repr(lease) == f"<Lease testapp.Bare {row.pk} fence=1 held>"
        lease.release()
        assert repr(lease) == f"<Lease testapp.Bare {row.pk} fence=1 ended>"


class TestRenew:
    def test_extends_the_row_and_the_trust(self, row: Any, process_clock: Clock) -> None:
        lease = hold(row, ttl=60)
        process_clock.ahead += 15
        change(row, busy_before=DbLater(45))
        lease.renew()
        assert lasts(row, 60)
        assert lease.remaining > 57

    def test_of_a_stolen_lease_is_a_loss_and_changes_nothing(self, row: Any) -> None:
        lease = hold(row)
        steal(row)
        before = columns(row)
        with pytest.raises(LeaseLost, match=r"lease of testapp.Bare \d+, fence 1 of me is lost"):
            lease.renew()
        assert columns(row) == before
        assert lease.lost.is_set()
        assert not lease.is_held
        assert lease.remaining == 0

    def test_of_an_expired_lease_is_a_loss_even_if_nobody_took_it(self, row: Any) -> None:
        lease = hold(row)
        expire(row)
        before = columns(row)
        with pytest.raises(LeaseLost):
            lease.renew()
        assert columns(row) == before

    def test_of_a_deleted_row_is_a_loss(self, row: Any) -> None:
        lease = hold(row)
        Bare.objects.filter(pk=row.pk)._raw_delete("default")
        with pytest.raises(LeaseLost):
            lease.renew()

    def test_after_a_loss_is_a_loss_again(self, row: Any) -> None:
        lease = hold(row)
        steal(row)
        for use in (lease.renew, lease.renew, lease.ensure_held, lease.release):
            with pytest.raises(LeaseLost):
                use()

    def test_after_a_release_says_so(self, row: Any) -> None:
        lease = hold(row)
        lease.release()
        for use in (lease.renew, lease.ensure_held):
            with pytest.raises(LeaseReleased, match="was released before"):
                use()

    def test_in_a_transaction_counts_only_once_it_is_committed(self, row: Any, process_clock: Clock) -> None:
        """Rolled back, the row is as it was, and the handle must not trust itself any longer."""
        lease = hold(row, ttl=60)
        process_clock.ahead += 15
        with pytest.raises(LookupError), transaction.atomic():
            lease.renew()
            raise LookupError
        assert lease.remaining < 44
        with transaction.atomic():
            lease.renew()
        assert lease.remaining > 57

    def test_does_not_reach_beyond_max_hold(self, row: Any, process_clock: Clock) -> None:
        lease = hold(row, ttl=60, max_hold=90)
        process_clock.ahead += 50
        change(row, busy_before=DbLater(10))
        lease.renew()
        assert 38 < busy_for(row) <= 40
        assert lease.remaining <= 38
        process_clock.ahead += 39
        with pytest.raises(LeaseLost, match="held for max_hold=90 s"):
            lease.ensure_held()


class TestRelease:
    def test_frees_the_row(self, row: Any) -> None:
        lease = hold(row)
        lease.release()
        assert busy_for(row) <= 0
        assert columns(row)["fence"] == 2
        assert not lease.is_held
        assert not keeper.is_renewing(lease)
        assert not lease.lost.is_set()

    def test_lets_the_row_rest_for_its_cool_down(self, row: Any) -> None:
        hold(row, cooldown=20).release()
        assert lasts(row, 20)

    def test_twice_is_an_error_of_its_own(self, row: Any) -> None:
        lease = hold(row)
        lease.release()
        granted(row, "successor")
        before = columns(row)
        with pytest.raises(LeaseReleased, match=r"lease of testapp.Bare \d+, fence 1 was released before"):
            lease.release()
        assert columns(row) == before

    def test_of_a_stolen_lease_is_reported_and_changes_nothing(self, row: Any) -> None:
        lease = hold(row, cooldown=600)
        steal(row)
        before = columns(row)
        with pytest.raises(LeaseLost) as caught:
            lease.release()
        assert not isinstance(caught.value, LeaseReleased)
        assert columns(row) == before

    def test_frees_a_row_sooner_that_the_holder_gave_up_but_nobody_took(
        self, row: Any, process_clock: Clock
    ) -> None:
        lease = hold(row)
        process_clock.ahead += 59
        with pytest.raises(LeaseLost):
            lease.ensure_held()
        with pytest.raises(LeaseLost):
            lease.release()
        assert busy_for(row) <= 0

    def test_that_could_not_be_sent_may_be_repeated(self, row: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        lease = hold(row)
        with monkeypatch.context() as patch:
            patch.setattr(verbs, "release", unavailable)
            with pytest.raises(DatabaseUnavailable):
                lease.release()
        lease.release()
        assert busy_for(row) <= 0


class TestSave:
    """``save()`` never writes the three lease columns of a row that exists (the document's ``close()`` does)."""

    @pytest.fixture
    def proxy(self) -> Proxy:
        return new(Proxy)

    def test_of_an_old_copy_does_not_undo_a_lease(self, proxy: Proxy) -> None:
        granted(proxy)
        proxy.notes = "edited meanwhile"
        proxy.save()
        after = columns(proxy)
        assert (after["fence"], after["holder"], after["notes"]) == (1, "me", "edited meanwhile")
        assert busy_for(proxy) > 59

    def test_of_a_copy_with_an_old_lease_does_not_bring_it_back(self, proxy: Proxy) -> None:
        lease = hold(proxy)
        copy = Proxy.objects.get()
        lease.release()
        copy.save()
        assert (columns(proxy)["fence"], columns(proxy)["holder"]) == (2, "")
        assert busy_for(proxy) <= 0

    def test_of_a_copy_made_by_hand_does_not_undo_a_lease(self, proxy: Proxy) -> None:
        granted(proxy)
        Proxy(pk=proxy.pk, host="made.by.hand", port=1).save()
        after = columns(proxy)
        assert (after["fence"], after["holder"], after["host"]) == (1, "me", "made.by.hand")
        assert busy_for(proxy) > 59

    def test_of_a_partly_loaded_copy_writes_what_was_loaded(self, proxy: Proxy) -> None:
        granted(proxy)
        copy = Proxy.objects.only("host").get()
        copy.host = "renamed"
        copy.save()
        after = columns(proxy)
        assert (after["host"], after["holder"], after["port"]) == ("renamed", "me", 3128)

    @pytest.mark.parametrize("column", ["busy_before", "fence", "holder"])
    def test_refuses_to_write_them_by_name(self, proxy: Proxy, column: str) -> None:
        with pytest.raises(ValueError, match="change only through a lease"):
            proxy.save(update_fields=["notes", column])

    def test_leaves_out_what_update_or_create_adds(self, proxy: Proxy) -> None:
        """Django adds every column that has a ``pre_save`` of its own."""
        fence = columns(proxy)["fence"]
        found, is_new = Proxy.objects.update_or_create(pk=proxy.pk, defaults={"notes": "written"})
        assert (found.pk, is_new) == (proxy.pk, False)
        assert (columns(proxy)["notes"], columns(proxy)["fence"]) == ("written", fence)

    def test_leaves_out_what_update_or_create_adds_to_nothing(self) -> None:
        row = new(Bare, label="one")
        assert Bare.objects.update_or_create(label="one") == (row, False)

    def test_writes_the_named_fields(self, proxy: Proxy) -> None:
        proxy.notes, proxy.port = "written", 1
        proxy.save(update_fields=["notes"])
        assert (columns(proxy)["notes"], columns(proxy)["port"]) == ("written", 3128)

    def test_of_a_new_row_writes_them_all(self) -> None:
        assert columns(new(Proxy, fence=7))["fence"] == 7


def unavailable(*_: Any, **__: Any) -> Any:
    raise DatabaseUnavailable(f"database {connection.alias!r} is gone")


def test_a_lease_is_entered_like_any_context_manager() -> None:
    with contextlib.ExitStack() as stack:
        lease = hold(new(Bare))
        assert stack.enter_context(lease) is lease
        with lease as same:
            assert same is lease
    assert not lease.is_held

"""``guard``: the caller's transaction commits only while the lease is held."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db.dialect import DbLater
from resourcepool.exceptions import GuardOutsideTransaction, LeaseLost, LeaseReleased
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from tests.app.models import Bare, Team
from tests.app.rows import change, columns, expire, hold, lasts, new, steal, wanted
from tests.committed import Clock, Statement, wake_keeper
from tests.eventually import InBackground, eventually


@pytest.fixture
def row() -> Any:
    return new(Bare)


def write() -> None:
    Team.objects.create(name="written by a holder")


def written() -> int:
    return Team.objects.count()


class TestWhileHeld:
    def test_the_transaction_commits(self, row: Any) -> None:
        lease = hold(row)
        with transaction.atomic(), lease.guard() as same:
            write()
        assert same is lease
        assert written() == 1

    def test_the_lease_is_renewed(self, row: Any, process_clock: Clock) -> None:
        lease = hold(row, ttl=60)
        process_clock.ahead += 15
        change(row, busy_before=DbLater(45))
        with transaction.atomic(), lease.guard():
            pass
        assert lasts(row, 60)
        assert lease.remaining > 57

    def test_it_may_be_used_many_times_and_nested(self, row: Any) -> None:
        lease = hold(row)
        for _ in range(3):
            with transaction.atomic(), lease.guard(), transaction.atomic(), lease.guard():
                write()
        assert written() == 3

    def test_it_does_not_release(self, row: Any) -> None:
        lease = hold(row)
        with transaction.atomic(), lease.guard():
            pass
        lease.ensure_held()
        assert keeper.is_renewing(lease)


class TestOnceLost:
    def test_it_says_so_and_the_work_is_rolled_back(self, row: Any) -> None:
        lease = hold(row)
        steal(row)
        before = columns(row)
        with pytest.raises(LeaseLost), transaction.atomic():
            write()
            lease.guard().__enter__()
        assert written() == 0
        assert columns(row) == before
        assert lease.lost.is_set()

    @pytest.mark.only("mysql", "postgresql")  # on SQLite nobody else writes while a transaction is open
    def test_it_says_so_also_when_that_happened_within_the_transaction(
        self, row: Any, other: BaseDatabaseWrapper
    ) -> None:
        lease = hold(row)
        with pytest.raises(LeaseLost), transaction.atomic():
            write()
            Bare.objects.count()  # whatever this transaction has read before
            with other.cursor() as cursor:
                cursor.execute("UPDATE testapp_bare SET busy_before = '2001-01-01 00:00:00'")
            assert verbs.claim(other, Bare, row.pk, wanted("thief")) is not None
            lease.guard().__enter__()
        assert written() == 0
        assert columns(row)["holder"] == "thief"

    def test_it_refuses_an_expired_lease_even_if_nobody_took_it(self, row: Any) -> None:
        lease = hold(row)
        expire(row)
        with pytest.raises(LeaseLost), transaction.atomic(), lease.guard():
            write()
        assert written() == 0

    @pytest.mark.parametrize("end", [steal, lambda row: None], ids=["stolen", "in doubt here"])
    def test_the_work_is_rolled_back_also_if_the_caller_catches_it(
        self, row: Any, end: Callable[[Any], object], process_clock: Clock
    ) -> None:
        lease = hold(row, ttl=60)
        end(row)
        process_clock.ahead += 59 if end is not steal else 0
        with transaction.atomic():
            write()
            with contextlib.suppress(LeaseLost), lease.guard():
                pytest.fail("it is lost")
        assert written() == 0

    def test_the_work_is_rolled_back_also_if_the_lease_was_released(self, row: Any) -> None:
        lease = hold(row)
        lease.release()
        with transaction.atomic():
            write()
            with contextlib.suppress(LeaseReleased), lease.guard():
                pytest.fail("it was released")
        assert written() == 0

    def test_the_work_is_rolled_back_also_if_the_database_refuses(
        self, row: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """MariaDB rolls back only the statement for which it has waited for too long."""

        def refuse(*_: Any) -> int:
            raise OperationalError(1205, "Lock wait timeout exceeded; try restarting transaction")

        lease = hold(row)
        monkeypatch.setattr(verbs, "renew", refuse)
        with transaction.atomic():
            write()
            with contextlib.suppress(OperationalError), lease.guard():
                pytest.fail("the row is locked")
        assert written() == 0

    def test_what_a_savepoint_before_it_has_done_stays(self, row: Any) -> None:
        lease = hold(row)
        steal(row)
        with transaction.atomic():
            write()
            with contextlib.suppress(LeaseLost), transaction.atomic(), lease.guard():
                write()
        assert written() == 1

    def test_a_rolled_back_renewal_does_not_count(self, row: Any, process_clock: Clock) -> None:
        lease = hold(row, ttl=60)
        process_clock.ahead += 15
        with pytest.raises(LookupError), transaction.atomic(), lease.guard():
            raise LookupError
        assert lease.remaining < 44

    def test_a_renewal_undone_by_a_savepoint_does_not_count(self, row: Any, process_clock: Clock) -> None:
        lease = hold(row, ttl=60)
        process_clock.ahead += 15
        with transaction.atomic():
            with pytest.raises(LookupError), transaction.atomic(), lease.guard():
                raise LookupError
            write()
        assert lease.remaining < 44

    def test_a_handle_that_no_longer_trusts_itself_does_not_even_ask(
        self, row: Any, process_clock: Clock, statements: list[Statement]
    ) -> None:
        lease = hold(row, ttl=60)
        process_clock.ahead += 59
        statements.clear()
        with pytest.raises(LeaseLost), transaction.atomic(), lease.guard():
            write()
        assert not [one for one in statements if one.sql.startswith(("UPDATE", "INSERT"))]


class TestMisuse:
    def test_outside_a_transaction_it_says_how_to_write_it(self, row: Any) -> None:
        lease = hold(row)
        how = r"with transaction.atomic\(\), lease.guard\(\)"
        with pytest.raises(GuardOutsideTransaction, match=how), lease.guard():
            write()
        assert written() == 0
        lease.ensure_held()

    def test_after_a_release_it_says_so(self, row: Any) -> None:
        lease = hold(row)
        lease.release()
        with pytest.raises(LeaseReleased), transaction.atomic(), lease.guard():
            write()
        assert written() == 0


@pytest.mark.only("mysql", "postgresql")
class TestRowLock:
    """From guard to commit nobody can take the row, not even once the lease has run out."""

    def test_nobody_takes_the_row_between_guard_and_commit(self, row: Any) -> None:
        lease = hold(row, ttl=0.3)

        def take() -> tuple[Any, int]:
            """Wait until the lease has run out, and claim as soon as the row lets go."""
            own = connections["default"]
            rows = Bare.objects.using("default").filter(pk=row.pk)
            eventually(lambda: not verbs.live_fences(own, Bare, [row.pk]))
            while (grant := verbs.claim(own, Bare, row.pk, wanted("successor"))) is None:
                assert rows.exists()
            return grant.fence, written()

        with transaction.atomic(), lease.guard():
            successor = InBackground(take)
            write()
            successor.join(0.8)
            assert successor.is_alive(), "took the row before the commit"
        assert successor.result() == (2, 1), "the successor sees the guarded work"

    def test_the_keeper_does_not_wait_for_it(
        self, row: Any, process_clock: Clock, statements: list[Statement]
    ) -> None:
        lease, another = hold(row, ttl=60), hold(new(Bare), ttl=60)
        with transaction.atomic(), lease.guard():
            process_clock.advance(30)
            eventually(lambda: another._trust.due_at > process_clock())
            renewals = [
                one.sql
                for one in statements
                if one.thread == "resourcepool-background-default" and "UPDATE" in one.sql
            ]
            assert len(renewals) == 1
            assert " IN (" not in renewals[0]
        assert another.is_held


class TestTheKeeper:
    def test_renews_again_as_soon_as_the_transaction_is_over(self, row: Any, process_clock: Clock) -> None:
        lease = hold(row, ttl=60)
        with transaction.atomic(), lease.guard():
            assert lease._is_in_transaction
        assert not lease._is_in_transaction
        process_clock.advance(30)
        eventually(lambda: lease._trust.due_at > process_clock())

    @pytest.mark.only("mysql", "postgresql")  # on SQLite any open transaction holds up every other writer
    def test_renews_while_a_later_transaction_of_the_same_connection_is_open(
        self, row: Any, process_clock: Clock
    ) -> None:
        lease = hold(row, ttl=60)
        with transaction.atomic(), lease.guard():
            pass
        with transaction.atomic():
            process_clock.advance(30)
            eventually(lambda: lease._trust.due_at > process_clock())

    @pytest.mark.only("mysql", "postgresql")
    def test_renews_after_a_rollback(self, row: Any, process_clock: Clock) -> None:
        lease = hold(row, ttl=60)
        with pytest.raises(LookupError), transaction.atomic(), lease.guard():
            raise LookupError
        with transaction.atomic():
            process_clock.advance(30)
            eventually(lambda: lease._trust.due_at > process_clock())

    @pytest.mark.only("mysql", "postgresql")
    def test_renews_the_others_while_somebody_elses_transaction_locks_one_row(
        self, row: Any, process_clock: Clock
    ) -> None:
        """An operator's page or a forgotten transaction must not cost this process all that it holds."""
        locked, others = hold(row, ttl=60), [hold(new(Bare), ttl=60) for _ in range(5)]
        with transaction.atomic():
            Bare.objects.select_for_update().get(pk=row.pk)
            process_clock.advance(30)
            eventually(lambda: all(lease._trust.due_at > process_clock() for lease in others))
            assert locked._trust.due_at < process_clock()
        wake_keeper()
        eventually(lambda: locked._trust.due_at > process_clock())


def test_an_error_of_the_database_inside_guard_reaches_the_caller(row: Any) -> None:
    lease = hold(row)
    with pytest.raises(DatabaseError), transaction.atomic(), lease.guard():
        Team.objects.create(id=1, name="x")
        Team.objects.create(id=1, name="x")
    assert written() == 0
    lease.ensure_held()

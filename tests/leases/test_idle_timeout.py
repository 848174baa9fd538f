"""The database server ends a transaction that locks a leased row and idles for about a ttl."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect import transactions
from resourcepool.models import Proxy
from tests.app.models import Team
from tests.app.rows import hold, new

pytestmark = pytest.mark.only("mysql", "postgresql")

# On MariaDB and MySQL a session has eight hours.
LIMIT = {
    "mysql": "SELECT MOD(@@SESSION.wait_timeout, 28800)",
    "postgresql": "SELECT EXTRACT(EPOCH FROM CURRENT_SETTING('idle_in_transaction_session_timeout')::interval)",
}
SET = {
    "mysql": "SET SESSION wait_timeout = COALESCE(NULLIF(%s, 0), 28800)",
    "postgresql": "SELECT SET_CONFIG('idle_in_transaction_session_timeout', %s || 's', false)",
}


@pytest.fixture
def own() -> Any:
    connection = connections["default"]
    yield connection
    connection.close()  # with what was set in its session


def limit(own: BaseDatabaseWrapper) -> float:
    """Return after how many seconds of silence the server ends a transaction of this session; 0: as usual."""
    with own.cursor() as cursor:
        cursor.execute(LIMIT[own.vendor])
        return float(cursor.fetchone()[0])


def guard(lease: Any) -> None:
    lease.guard().__enter__()


def claim(lease: Any) -> None:
    Proxy.pool.acquire(wait=False, allow_in_transaction=True, ttl=60)


INSIDE: dict[str, Callable[[Any], object]] = {
    "guard": guard,
    "renew": lambda lease: lease.renew(),
    "release": lambda lease: lease.release(),
    "hand over": lambda lease: lease.hand_over("somebody else"),
    "claim": claim,
}


@pytest.mark.parametrize("what", INSIDE)
class TestWithinATransaction:
    def test_it_has_a_limit_until_the_commit(self, own: BaseDatabaseWrapper, what: str) -> None:
        new(Proxy)
        lease = hold(new(Proxy), ttl=60)
        with transaction.atomic():
            assert limit(own) == 0
            INSIDE[what](lease)
            assert limit(own) == 60
        assert limit(own) == 0

    def test_it_has_a_limit_until_it_is_rolled_back(self, own: BaseDatabaseWrapper, what: str) -> None:
        new(Proxy)
        lease = hold(new(Proxy), ttl=60)
        with pytest.raises(LookupError), transaction.atomic():
            INSIDE[what](lease)
            assert limit(own) == 60
            raise LookupError
        assert limit(own) == 0
        with transaction.atomic():
            assert limit(own) == 0


@pytest.mark.parametrize(("usual", "then"), [(0, 60), (40, 40), (90, 60)])
def test_it_is_never_more_than_before_and_that_comes_back(
    own: BaseDatabaseWrapper, usual: int, then: int
) -> None:
    with own.cursor() as cursor:
        cursor.execute(SET[own.vendor], [usual])
    lease = hold(new(Proxy), ttl=60)
    for _ in range(2):
        with transaction.atomic():
            guard(lease)
            assert limit(own) == then
        assert limit(own) == usual


@pytest.mark.only("mariadb")
@pytest.mark.parametrize(("usual", "then"), [(90, 60), (40, 40)])
@pytest.mark.parametrize("name", ["idle_transaction_timeout", "idle_write_transaction_timeout"])
def test_a_limit_for_transactions_that_the_project_has_set_does_not_keep_a_row_longer(
    own: BaseDatabaseWrapper, name: str, usual: int, then: int
) -> None:
    def limit_of_transactions() -> int:
        with own.cursor() as cursor:
            cursor.execute(f"SELECT @@SESSION.{name}")
            return int(cursor.fetchone()[0])

    with own.cursor() as cursor:
        cursor.execute(f"SET SESSION {name} = %s", [usual])
    lease = hold(new(Proxy), ttl=60)
    with transaction.atomic():
        guard(lease)
        assert limit_of_transactions() == then
    assert limit_of_transactions() == usual
    with transactions.short_transaction(own):
        assert limit_of_transactions() == transactions.IDLE
    assert limit_of_transactions() == usual


def test_of_several_leases_the_shortest_counts(own: BaseDatabaseWrapper) -> None:
    leases = [hold(new(Proxy), ttl=ttl) for ttl in (60, 30, 90, 0.5)]
    with transaction.atomic():
        seen = []
        for lease in leases:
            guard(lease)
            seen.append(limit(own))
    assert seen == [60, 30, 30, 5], "a pause of a few seconds is nobody's end, however short the ttl"
    assert limit(own) == 0


def test_a_session_that_is_lost_in_it_takes_its_limit_along(own: BaseDatabaseWrapper) -> None:
    lease = hold(new(Proxy), ttl=60)
    with transaction.atomic():
        guard(lease)
        own.close()
    assert limit(own) == 0
    with transaction.atomic():
        guard(lease)
        assert limit(own) == 60
    assert limit(own) == 0


@pytest.mark.only("mysql")
def test_a_session_that_cannot_be_set_back_is_used_no_more(
    own: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its short limit it would end in the pauses between transactions."""

    def refuse(*_: object) -> None:
        raise OperationalError(1205, "Lock wait timeout exceeded")

    lease = hold(new(Proxy), ttl=60)
    with transaction.atomic():
        guard(lease)
        monkeypatch.setattr(transactions, "execute", refuse)
    assert own.connection is None
    assert limit(own) == 0


def test_outside_of_transactions_nothing_is_set(own: BaseDatabaseWrapper) -> None:
    lease = hold(new(Proxy), ttl=60)
    lease.renew()
    lease.release()
    assert limit(own) == 0
    with transaction.atomic():
        Team.objects.create(name="not ours")
        assert limit(own) == 0


@pytest.fixture
def by_hand(own: BaseDatabaseWrapper) -> Iterator[BaseDatabaseWrapper]:
    """A session in which transactions are begun and ended by hand."""
    own.set_autocommit(False)
    yield own
    own.rollback()
    own.set_autocommit(True)


WAITS = {
    "mysql": "SELECT CONCAT(@@SESSION.innodb_lock_wait_timeout, @@SESSION.lock_wait_timeout)",
    "postgresql": "SHOW lock_timeout",
}


@pytest.mark.parametrize(
    "change", [lambda row: row.save(), lambda row: Proxy.objects.filter(pk=row.pk).drain("a test")]
)
def test_what_is_set_for_a_change_does_not_stay_in_a_transaction_begun_by_hand(
    by_hand: BaseDatabaseWrapper, change: Callable[[Any], object]
) -> None:
    row = new(Proxy)
    before = waits(by_hand), limit(by_hand)
    change(row)
    assert (waits(by_hand), limit(by_hand)) == before


def test_a_guard_leaves_no_limit_to_the_next_transaction_that_is_begun_by_hand(
    own: BaseDatabaseWrapper,
) -> None:
    lease = hold(new(Proxy), ttl=60)
    own.set_autocommit(False)
    with transaction.atomic():
        guard(lease)
    own.commit()
    assert limit(own) == 0
    own.rollback()
    own.set_autocommit(True)


def waits(own: BaseDatabaseWrapper) -> Any:
    """Return what this session has set for waiting for a locked row."""
    with own.cursor() as cursor:
        cursor.execute(WAITS[own.vendor])
        return cursor.fetchone()[0]

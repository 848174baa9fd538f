"""Whoever locks a row in a transaction and is not heard of any more: the server ends that after about a ttl."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.models import Proxy
from tests.app.models import Team
from tests.app.rows import hold, new

pytestmark = pytest.mark.only("mysql", "postgresql")

LIMIT = {
    "mysql": "SELECT @@SESSION.idle_write_transaction_timeout",
    "postgresql": "SELECT EXTRACT(EPOCH FROM CURRENT_SETTING('idle_in_transaction_session_timeout')::interval)",
}
SET = {
    "mysql": "SET SESSION idle_write_transaction_timeout = %s",
    "postgresql": "SELECT SET_CONFIG('idle_in_transaction_session_timeout', %s || 's', false)",
}


@pytest.fixture
def own() -> Any:
    connection = connections["default"]
    yield connection
    connection.close()  # with what was set in its session


def limit(own: BaseDatabaseWrapper) -> float:
    """Return after how many seconds of silence the server ends a transaction of this session; 0: never."""
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


def test_outside_of_transactions_nothing_is_set(own: BaseDatabaseWrapper) -> None:
    lease = hold(new(Proxy), ttl=60)
    lease.renew()
    lease.release()
    assert limit(own) == 0
    with transaction.atomic():
        Team.objects.create(name="not ours")
        assert limit(own) == 0

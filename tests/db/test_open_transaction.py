"""Consecutive transactions on one connection are distinguished, also from another thread."""

import functools
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.test import TestCase

from resourcepool.db.open_transaction import OpenTransaction
from tests.app.models import Bare, Team
from tests.app.rows import hold, lasts, new
from tests.committed import Clock
from tests.eventually import InBackground, eventually


def opened() -> OpenTransaction:
    return OpenTransaction(connections["default"])


def is_open(seen: OpenTransaction) -> bool:
    """Whether it is, as another thread sees it."""
    return InBackground(lambda: seen.is_open).result()


@transaction.atomic
def decorated(work: Callable[[], Any]) -> Any:
    """Django enters the same ``Atomic`` for each call."""
    return work()


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_it_is_open_until_it_is_committed_or_rolled_back(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Django takes the block off its list before it does that; a renewal in between would find nothing."""
    seen: list[bool] = []
    ends = getattr(connection, end)

    def look_and_end() -> None:
        seen.append(is_open(first))
        ends()

    with monkeypatch.context() as patch, transaction.atomic():
        first = opened()
        patch.setattr(connection, end, look_and_end)
        transaction.set_rollback(end == "rollback")
    assert seen == [True]
    assert not is_open(first)


def test_it_is_over_once_it_is_committed() -> None:
    first = decorated(opened)
    assert not is_open(first)


def test_it_is_over_once_it_is_rolled_back() -> None:
    seen: list[OpenTransaction] = []

    def fail() -> None:
        seen.append(opened())
        raise LookupError

    with pytest.raises(LookupError):
        decorated(fail)
    assert not decorated(functools.partial(is_open, seen[0]))


def test_the_next_call_of_a_decorated_function_is_another_one() -> None:
    first = decorated(opened)
    second, is_first_open = decorated(lambda: (opened(), is_open(first)))
    assert not is_first_open
    assert not is_open(second)


def test_all_that_began_in_one_see_the_same() -> None:
    def work() -> None:
        first = opened()
        with transaction.atomic():
            second = opened()
        assert is_open(first)
        assert is_open(second)

    decorated(work)


def test_it_goes_on_when_a_savepoint_is_rolled_back() -> None:
    def work() -> None:
        with pytest.raises(LookupError), transaction.atomic():
            seen = opened()
            raise LookupError
        assert is_open(seen)

    decorated(work)


def test_one_entered_twice_is_still_one() -> None:
    def work() -> None:
        first = opened()
        decorated(opened)
        assert is_open(first)

    decorated(work)


def test_it_is_over_when_the_connection_is_lost() -> None:
    def work() -> OpenTransaction:
        seen = opened()
        connection.close()
        return seen

    first = decorated(work)
    assert not decorated(lambda: is_open(first))


def test_nobody_else_notices_that_it_was_looked_at() -> None:
    @transaction.atomic(durable=True)
    def durable() -> None:
        opened()
        assert connection.run_on_commit == []
        Team.objects.create(name="written")

    durable()
    durable()
    assert Team.objects.count() == 2
    assert connection.atomic_blocks == []


def test_what_was_guarded_in_one_call_is_not_in_the_transaction_of_the_next() -> None:
    lease = hold(new(Bare))

    def guard() -> None:
        with lease.guard():
            assert lease._is_in_transaction

    decorated(guard)
    assert not decorated(lambda: lease._is_in_transaction)


@pytest.mark.only("mysql", "postgresql")  # on SQLite nobody else writes while a transaction is open
def test_what_was_guarded_in_one_call_is_renewed_during_the_next(process_clock: Clock) -> None:
    row = new(Bare)
    lease = hold(row, ttl=60)

    def guard() -> None:
        with lease.guard():
            pass

    def renewed_meanwhile() -> None:
        process_clock.advance(25)
        eventually(lambda: lease._trust.due_at > process_clock())

    decorated(guard)
    decorated(renewed_meanwhile)
    assert lasts(row, 60)


class InsideTestCase(TestCase):
    """Where a transaction is around everything."""

    def test_a_durable_block_may_begin_after_a_lease(self) -> None:
        lease = hold(new(Bare))
        assert lease._is_in_transaction
        with transaction.atomic(durable=True), lease.guard():
            Team.objects.create(name="written")
        assert lease._is_in_transaction


def test_a_renewal_in_a_transaction_begun_by_hand_is_not_trusted() -> None:
    """Nobody tells when it is committed."""
    lease = hold(new(Bare))
    until = lease._trust.until
    transaction.set_autocommit(False)
    try:
        lease.renew()
        assert lease._trust.until == until
        transaction.rollback()
    finally:
        transaction.set_autocommit(True)
    lease.renew()
    assert lease._trust.until > until

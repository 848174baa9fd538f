"""Errors say what is wrong in words that help here, and mistakes that would pass unseen are errors."""

from typing import Any

import pytest
from django.db import transaction

from resourcepool.exceptions import AcquireTimeout, BadOption, ClaimInTransaction, DatabaseUnavailable
from resourcepool.locks import Barrier, Condition, Lock, RWLock, Semaphore
from tests.eventually import InBackground


def test_an_open_transaction_is_refused_without_advice_that_locks_do_not_take() -> None:
    with transaction.atomic(), pytest.raises(ClaimInTransaction, match=r"transaction\.atomic") as error:
        Lock("report").acquire()
    assert "or, for a resource, pass allow_in_transaction=True" in str(error.value)


@pytest.mark.parametrize("one", [Lock("a"), Semaphore("a"), RWLock("a", readers=2).write()], ids=repr)
def test_an_outage_at_the_last_moment_is_still_a_timeout(one: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> None:
        raise DatabaseUnavailable("away")

    one.acquire()
    for kind, asks in ((Lock, "holder"), (Semaphore, "_count"), (RWLock, "holders")):
        monkeypatch.setattr(kind, asks, away)
    assert InBackground(lambda: one.acquire(timeout=0.05)).result() is None


def test_a_timeout_of_a_writer_tells_all_who_read_and_the_seconds_that_were_asked_for() -> None:
    lock = RWLock("catalogue", readers=5, timeout=0.05)
    for _ in range(4):
        InBackground(lock.read().acquire).result()
    with pytest.raises(AcquireTimeout) as error:
        lock.write().__enter__()
    text = str(error.value)
    assert "within 0.05 s: held by " in text
    assert text.count(", ") == 2
    assert text.endswith(" and others")


def test_a_barrier_shows_the_name_that_it_was_given() -> None:
    assert repr(Barrier("import done")) == "<Barrier 'import done'>"


def test_a_name_in_the_place_of_the_lock_of_a_condition_is_told_where_it_belongs() -> None:
    with pytest.raises(BadOption, match=r"Condition\(name="):
        Condition("orders")  # type: ignore[arg-type]

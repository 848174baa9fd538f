"""Circles of waiters, found in the rows and named."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from resourcepool.models import SemaphorePermit, Ticket
from resourcepool.status.locks.cycles import cycles, short_holder
from resourcepool.status.snapshots import as_data
from tests.status.locks.conftest import A, B, C, later, lock, permits, waits

pytestmark = pytest.mark.django_db


def test_two_locks_taken_in_different_orders_are_named_in_words() -> None:
    lock("orders", A)
    lock("stock", B)
    waits("lock", "stock", A, waited=50)
    waits("lock", "orders", B, waited=30)
    (one,) = cycles()
    assert one.said == (
        "web-1/4711/worker-1 holds lock orders and waits for lock stock; "
        "web-1/4711/worker-2 holds lock stock and waits for lock orders"
    )
    assert 30 <= one.lasts < 3_000
    assert as_data(one)["said"] == one.said


def test_other_requests_of_one_thread_are_its_own() -> None:
    lock("orders", A)
    lock("stock", B)
    waits("lock", "stock", A.replace(".1@", ".55@"))
    waits("lock", "orders", B)
    assert len(cycles()) == 1


def test_threads_of_different_processes_are_different_though_their_numbers_are_the_same() -> None:
    lock("orders", A)
    lock("stock", B)
    waits("lock", "stock", A.replace("c0ffee", "facade"))
    waits("lock", "orders", B)
    assert cycles() == []


def test_a_lease_that_ran_out_and_a_dead_waiter_are_in_no_circle() -> None:
    lock("orders", A)
    stock = lock("stock", B)
    ticket = waits("lock", "stock", A)
    waits("lock", "orders", B)
    type(stock).objects.filter(pk="stock").update(busy_before="2000-01-01T00:00:00Z")
    assert cycles() == []
    type(stock).objects.filter(pk="stock").update(busy_before="2099-01-01T00:00:00Z")
    assert len(cycles()) == 1
    Ticket.objects.filter(pk=ticket.pk).update(busy_before="2000-01-01T00:00:00Z")
    assert cycles() == []


def test_a_semaphore_with_a_permit_elsewhere_may_resolve_it() -> None:
    lock("orders", A)
    permits("semaphore", "licence", [B, C])
    waits("semaphore", "licence", A)
    waits("lock", "orders", B)
    assert cycles() == []
    SemaphorePermit.objects.filter(holder=C).update(holder=B)
    (one,) = cycles()
    assert one.said == (
        "web-1/4711/worker-1 holds lock orders and waits for semaphore licence; "
        "web-1/4711/worker-2 holds semaphore licence and waits for lock orders"
    )


def test_a_permit_out_of_service_helps_nobody() -> None:
    lock("orders", A)
    permits("semaphore", "licence", [B, C], out=1)
    waits("semaphore", "licence", A)
    waits("lock", "orders", B)
    assert len(cycles()) == 1


def test_what_a_ticket_has_collected_so_far_is_held_by_nobody() -> None:
    permits("rwlock", "catalogue", [A, "", ""])
    permits("rwlock", "prices", [later(A), "", ""])
    waits("rwlock", "prices", A, count=3, priority=-1)
    waits("rwlock", "catalogue", B, count=3, priority=-1)
    permits("rwlock", "stock", [B])
    waits("rwlock", "prices", C, count=3, priority=-1)
    permits("rwlock", "news", [C])
    assert cycles() == []


@pytest.mark.parametrize(("holder", "found"), [(later(C), 0), (C, 2)])
def test_what_a_ticket_has_collected_may_be_given_to_one_of_the_circle(holder: str, found: int) -> None:
    """Not so what its thread holds by another request: then it waits for itself, too."""
    lock("orders", B)
    permits("semaphore", "licence", [A, holder])
    waits("lock", "orders", A)
    waits("semaphore", "licence", B)
    waits("semaphore", "licence", C, count=2)
    assert len(cycles()) == found


def test_who_waits_for_a_condition_may_be_notified_by_anybody() -> None:
    permits("condition", "orders", [A])
    lock("orders", A)
    waits("condition", "orders", A)
    waits("lock", "orders", B)
    assert cycles() == []


def test_it_is_one_statement_and_one_for_each_kind_that_is_waited_for() -> None:
    lock("orders", A)
    for many, statements in ((0, 1), (1, 2), (20, 4)):
        for number in range(many):
            lock(f"{many}-{number}", A)
            waits("lock", f"{many}-{number}", B)
            if many > 1:
                permits("semaphore", f"{many}-{number}", [A])
                permits("rwlock", f"{many}-{number}", [A])
                waits("semaphore", f"{many}-{number}", B)
                waits("rwlock", f"{many}-{number}", B)
        with CaptureQueriesContext(connection) as sent:
            assert cycles() == []
        assert len(sent) == statements


def test_names_that_were_cut_off_prove_nothing(monkeypatch: Any) -> None:
    lock("orders", A)
    lock("stock", B)
    waits("lock", "stock", A)
    waits("lock", "orders", B)
    monkeypatch.setattr("resourcepool.status.locks.cycles.MAX_HOLDERS_READ", 1)
    assert cycles() == []


def test_a_name_without_a_number_is_shown_as_it_is() -> None:
    assert short_holder("nobody") == "nobody"
    assert short_holder(A) == "web-1/4711/worker-1"

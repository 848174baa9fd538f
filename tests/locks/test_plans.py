"""Among thousands of names, every statement of a read-write lock or a condition finds its rows by an index."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.db.inspection import inspector
from resourcepool.leases.free_rows import read_free_rows
from resourcepool.leases.terms import Grant
from resourcepool.locks import Condition, RWLock, notifications
from resourcepool.locks.notifications import NotificationLease
from resourcepool.models import ConditionWaiter, RWLockPermit, Ticket
from resourcepool.safety.doctor import capture_statement
from resourcepool.waiting import assignment

pytestmark = pytest.mark.only("mysql", "postgresql")

MANY = 2_000
TICKETS, WAITERS, PERMITS = (model._meta.db_table for model in (Ticket, ConditionWaiter, RWLockPermit))


def analyze(*tables: str) -> None:
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"ANALYZE {'TABLE ' if connection.vendor == 'mysql' else ''}{table}")


def test_of_a_read_write_lock() -> None:
    rows = [RWLockPermit(key=f"n{name}#{one}", name=f"n{name}") for name in range(1_100) for one in range(3)]
    RWLockPermit.objects.bulk_create(rows, batch_size=1_000)
    analyze(PERMITS)
    sent: list[tuple[str, Any]] = []

    def note(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        sent.append((sql, params))
        return execute(sql, params, many, context)

    lock = RWLock("n1000", readers=3)
    connection.force_debug_cursor = True  # so that every cursor is Django's
    try:
        with connection.execute_wrapper(note):
            with lock.read():
                lock.upgrade()
                lock.downgrade()
                lock.holders()
            with lock.write():
                assignment.assign_free_rows(connection, RWLockPermit, "n1000")
    finally:
        connection.force_debug_cursor = False
    ours = [(sql, params) for sql, params in sent if PERMITS in sql and "INSERT" not in sql]
    assert len(ours) > 6
    for sql, params in ours:
        plan = inspector(connection).explain(sql, params)
        used = [step.index or "" for step in plan.steps if step.table == PERMITS]
        assert all(index.startswith(("PRIMARY", PERMITS, "rp_rwlockpermit_free")) for index in used), sql


def many_wait() -> None:
    pools = [f"resourcepool.conditionwaiter:name {number % 500}" for number in range(MANY)]
    of_tickets = {"asked_at": DbNow(), "busy_before": DbLater(600), "holder": "x"}
    Ticket.objects.bulk_create([Ticket(pool=pool, fence=1, **of_tickets) for pool in pools], batch_size=2_000)
    ConditionWaiter.objects.bulk_create(
        [
            ConditionWaiter(
                pk=f"name {number % 500}#{number}", name=f"name {number % 500}", busy_before=DbLater(600)
            )
            for number in range(MANY)
        ],
        batch_size=2_000,
    )


def test_of_a_condition() -> None:
    many_wait()
    analyze(TICKETS, WAITERS)
    waiting = notifications.waiting(connection, ConditionWaiter, "name 7")
    attempt = notifications._NotifyTransaction(connection, ConditionWaiter, "name 7", 1)
    chosen = notifications._Chosen(waiting[0].pk, "x", 6_000_000, 0, 1)
    request = Condition(name="name 7")._wait_request(1)
    used = NotificationLease(ConditionWaiter, "default", Grant("name 7#7", 1, "x", 0.0), request.terms)
    used.is_consumed = True
    in_line, by_key = {"resourcepool_ticket_in_line"}, {"PRIMARY", f"{TICKETS}_pkey", f"{WAITERS}_pkey"}
    by_key |= indexes_of_text_keys()
    where = ConditionWaiter.where("name 7", connection)

    sends: dict[str, tuple[Callable[[], Any], str, set[str]]] = {
        "anybody": (waiting.exists, TICKETS, in_line),
        "choose": (lambda: list(waiting.select_for_update()[:1]), TICKETS, in_line),
        "give": (lambda: attempt._give([chosen]), TICKETS, by_key),
        "free": (
            lambda: read_free_rows(connection, ConditionWaiter, where, 8),
            WAITERS,
            {"rp_conditionwaiter_free"},
        ),
        "use": (lambda: used._send_release(connection), WAITERS, by_key),
    }
    found = {}
    for name, (send, table, _) in sends.items():
        plan = inspector(connection).explain(*capture_statement(connection, send))
        found[name] = {step.index for step in plan.steps if step.table == table}
    assert {name: used for name, used in found.items() if not used or not used <= sends[name][2]} == {}


def indexes_of_text_keys() -> set[str]:
    """Return the index for LIKE that Django adds on PostgreSQL to a key of text."""
    with connection.cursor() as cursor:
        constraints = connection.introspection.get_constraints(cursor, WAITERS)
    return {name for name in constraints if name.endswith("_like")}

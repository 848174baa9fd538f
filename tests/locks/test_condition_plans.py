"""However many wait elsewhere, every statement of a condition finds its rows by index; and how many there are."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.db.inspection import inspector
from resourcepool.leases.free_rows import read_free_rows
from resourcepool.leases.terms import Grant
from resourcepool.locks import Condition, Lock, notifications
from resourcepool.locks.notifications import NotificationLease
from resourcepool.models import ConditionWaiter, Ticket
from resourcepool.safety.doctor import capture_statement
from tests.committed import Statement
from tests.eventually import InBackground, eventually

MANY = 2_000
VERBS = ("INSERT INTO", "UPDATE", "DELETE")
TICKETS, ROWS = Ticket._meta.db_table, ConditionWaiter._meta.db_table


def _many() -> None:
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
    with connection.cursor() as cursor:
        for table in (TICKETS, ROWS):
            cursor.execute(f"ANALYZE {'TABLE ' if connection.vendor == 'mysql' else ''}{table}")


@pytest.mark.only("mysql", "postgresql")
def test_every_statement_finds_its_rows_by_index() -> None:
    _many()
    waiting = notifications.waiting(connection, ConditionWaiter, "name 7")
    attempt = notifications._NotifyTransaction(connection, ConditionWaiter, "name 7", 1)
    chosen = notifications._Chosen(waiting[0].pk, "x", 6_000_000, 0, 1)
    request = Condition(name="name 7")._wait_request(1)
    used = NotificationLease(ConditionWaiter, "default", Grant("name 7#7", 1, "x", 0.0), request.terms)
    used.is_consumed = True
    in_line, by_key = {"resourcepool_ticket_in_line"}, {"PRIMARY", f"{TICKETS}_pkey", f"{ROWS}_pkey"}
    by_key |= _indexes_of_text_keys()
    where = ConditionWaiter.where("name 7", connection)

    sends: dict[str, tuple[Callable[[], Any], str, set[str]]] = {
        "anybody": (waiting.exists, TICKETS, in_line),
        "choose": (lambda: list(waiting.select_for_update()[:1]), TICKETS, in_line),
        "give": (lambda: attempt._give([chosen]), TICKETS, by_key),
        "free": (
            lambda: read_free_rows(connection, ConditionWaiter, where, 8),
            ROWS,
            {"rp_conditionwaiter_free"},
        ),
        "use": (lambda: used._send_release(connection), ROWS, by_key),
    }
    found = {}
    for name, (send, table, _) in sends.items():
        plan = inspector(connection).explain(*capture_statement(connection, send))
        found[name] = {step.index for step in plan.steps if step.table == table}
    assert {name: used for name, used in found.items() if not used or not used <= sends[name][2]} == {}


def _sent(statements: list[Statement]) -> list[str]:
    mine = [one.sql for one in statements if one.thread == "MainThread"]
    return [sql.split()[0] for sql in mine if TICKETS in sql or ROWS in sql]


def test_a_notification_of_nobody_is_one_statement(statements: list[Statement]) -> None:
    with Condition(Lock("orders", ttl=60)) as held:
        statements.clear()
        Condition(Lock("orders")).notify()
        Condition(Lock("orders")).notify_all()
        assert held.is_held
    assert _sent(statements)[:2] == ["SELECT", "SELECT"]


def test_a_notification_of_several_is_four(statements: list[Statement]) -> None:
    condition = Condition(Lock("orders", ttl=60))

    def wait() -> None:
        with condition:
            condition.wait()

    threads = [InBackground(wait) for _ in range(3)]
    eventually(lambda: Ticket.objects.in_line_for(ConditionWaiter, "orders").waiting().count() == 3)
    with condition:
        statements.clear()
        condition.notify_all()
        sent = _sent(statements)
    assert sent == ["SELECT", "SELECT", "INSERT", "UPDATE"]
    for thread in threads:
        thread.result()


def test_a_wait_is_a_ticket_besides_what_the_lock_takes(statements: list[Statement]) -> None:
    with Condition(Lock("orders", ttl=60)) as held:
        statements.clear()
        assert Condition(Lock("orders", ttl=60)).wait(0) is False
        changes = [one.sql for one in statements if one.thread == "MainThread" and "resourcepool_" in one.sql]
        assert held.is_held
    verbs = [next(verb for verb in VERBS if verb in sql) for sql in changes if not sql.startswith("SELECT")]
    assert verbs == [
        "INSERT INTO",
        "UPDATE",
        "DELETE",
        "UPDATE",
    ]  # its ticket, the lock's release, its ticket, the lock


def _indexes_of_text_keys() -> set[str]:
    """Return the index for LIKE that Django adds on PostgreSQL to a key of text."""
    with connection.cursor() as cursor:
        constraints = connection.introspection.get_constraints(cursor, ROWS)
    return {name for name in constraints if name.endswith("_like")}

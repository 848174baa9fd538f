"""The number of statements of frequent calls (docs/benchmarks.md)."""

from typing import Any

import pytest
from django.db import connection

from resourcepool.clock import monotonic
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting.models import pool_name
from resourcepool.waiting.pacing import pacing_of
from tests.app.rows import columns, hold, new, several
from tests.committed import Statement
from tests.concurrency.tickets import in_line
from tests.eventually import InBackground, eventually
from tests.waiting.threads import ticket

pytestmark = pytest.mark.usefixtures("transactional_db")


def sent(statements: list[Statement]) -> list[str]:
    """Return the first words of the statements since the last call."""
    verbs = [one.sql.split("FOR ", 1)[-1].split()[0] for one in statements]
    statements.clear()
    return verbs


@pytest.fixture
def statements(statements: list[Statement]) -> list[Statement]:
    connection.ensure_connection()
    _ = getattr(connection, "mysql_is_mariadb", None)  # asked once per connection
    return statements


@pytest.mark.parametrize(("strategy", "expected"), [("sticky", ["UPDATE"]), ("spread", ["SELECT", "UPDATE"])])
def test_a_strategy_acquires_with_as_few_statements_and_releases_with_one(
    statements: list[Statement], strategy: Any, expected: list[str]
) -> None:
    several(Proxy, 3)
    Proxy.pool.acquire(strategy="sticky").release()
    Proxy.pool._last_seen._free.clear()
    statements.clear()
    lease: Any = Proxy.pool.acquire(strategy=strategy)
    assert sent(statements) == expected
    lease.release()
    assert sent(statements) == ["UPDATE"]


def test_the_resource_is_read_only_when_it_is_asked_for(statements: list[Statement]) -> None:
    new(Proxy)
    lease: Any = Proxy.pool.acquire()
    statements.clear()
    assert lease.resource.pk == lease.pk
    assert lease.resource is lease.resource
    assert sent(statements) == ["SELECT"]
    lease.release()


def test_a_release_to_somebody_in_line_changes_row_and_ticket_in_one_statement(
    statements: list[Statement],
) -> None:
    """If the database can."""
    lease, first, second = hold(new(Proxy)), ticket(Proxy), ticket(Proxy)
    pacing_of(pool_name(Proxy), "default").found_waiters(monotonic())
    statements.clear()
    lease.release()
    assert (columns(first)["is_waiting"], columns(second)["is_waiting"]) == (False, True)
    words = [one.sql for one in statements if one.thread == "MainThread" and "UPDATE" in one.sql]
    assert len(words) == {"sqlite": 2}.get(connection.vendor, 1)


def test_a_wait_costs_a_ticket_and_looks(statements: list[Statement]) -> None:
    held = hold(new(Proxy))
    statements.clear()
    waiter = InBackground(lambda: Proxy.pool.acquire(timeout=10))
    eventually(in_line)
    held.release()
    waiter.result().release()
    # Without the occasional query for rows to return to service, and without the settings of a new session.
    usual = [one for one in statements if "status" not in one.sql and one.sql.split()[0] != "SET"]
    verbs = sent([one for one in usual if one.thread == waiter.name])
    assert {*verbs[verbs.index("INSERT") + 1 :]} == {"SELECT"}
    of_tickets = [one.sql.split()[0] for one in statements if Ticket._meta.db_table in one.sql]
    assert of_tickets.count("INSERT") == 1  # the history may add another one

"""How many statements the things cost that happen all the time (docs/benchmarks.md)."""

from typing import Any

import pytest
from django.db import connection

from resourcepool.models import Proxy
from tests.app.rows import hold, new, several
from tests.committed import Statement
from tests.eventually import InBackground, eventually

pytestmark = pytest.mark.usefixtures("transactional_db")


def sent(statements: list[Statement]) -> list[str]:
    """Return the first words of what was sent since the last call."""
    verbs = [one.sql.split("FOR ", 1)[-1].split()[0] for one in statements]
    statements.clear()
    return verbs


@pytest.fixture
def statements(statements: list[Statement]) -> list[Statement]:
    connection.ensure_connection()
    _ = getattr(connection, "mysql_is_mariadb", None)  # asked once per connection
    return statements


def test_sticky_acquires_with_one_statement_and_releases_with_one(statements: list[Statement]) -> None:
    several(Proxy, 3)
    Proxy.pool.acquire(strategy="sticky").release()
    statements.clear()
    lease: Any = Proxy.pool.acquire(strategy="sticky")
    assert sent(statements) == ["UPDATE"]
    lease.release()
    assert sent(statements) == ["UPDATE"]


def test_spread_acquires_with_two_statements(statements: list[Statement]) -> None:
    several(Proxy, 3)
    statements.clear()
    lease: Any = Proxy.pool.acquire(strategy="spread")
    assert sent(statements) == ["SELECT", "UPDATE"]
    lease.release()


def test_the_resource_is_read_only_when_it_is_asked_for(statements: list[Statement]) -> None:
    new(Proxy)
    lease: Any = Proxy.pool.acquire()
    statements.clear()
    assert lease.resource.pk == lease.pk
    assert lease.resource is lease.resource
    assert sent(statements) == ["SELECT"]
    lease.release()


def test_a_wait_costs_a_ticket_its_removal_a_claim_and_the_looks_in_between(
    statements: list[Statement],
) -> None:
    held = hold(new(Proxy))
    statements.clear()
    waiter = InBackground(lambda: Proxy.pool.acquire(timeout=10))
    eventually(lambda: [one for one in statements if one.sql.startswith("INSERT")])
    held.release()
    waiter.result().release()
    eventually(lambda: any(one.sql.startswith("DELETE") for one in statements))
    # Not the look for what is back in service, which comes now and then.
    by_poller = [one for one in statements if one.thread == "resourcepool-poller" and "status" not in one.sql]
    words = sent(by_poller)
    assert (words.count("INSERT"), words.count("UPDATE"), words.count("DELETE")) == (1, 1, 1)

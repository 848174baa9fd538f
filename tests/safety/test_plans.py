"""The plans of the frequent statements: they belong to the package, are good, and bad ones are detected."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from resourcepool.db.inspection import QueryPlan, TableAccess
from resourcepool.leases import verbs
from resourcepool.models import Proxy, Ticket
from resourcepool.safety.doctor import capture_statement, judge_plan, statements
from tests.app.models import Device, Poll
from tests.app.rows import columns, new

NAMES = ["find free rows", "find free rows while waiting", "claim", "release", "renew one", "renew many"]
MANY = 1_500
BY_KEY = TableAccess("things", "PRIMARY", by_key=True)
BY_INDEX = TableAccess("things", "things_free")
WHOLE = TableAccess("things", None)


@pytest.mark.parametrize(
    ("plan", "big", "keyed", "problem"),
    [
        (QueryPlan((BY_KEY,), sorts=False, is_forced=False), {"things"}, "things", None),
        (QueryPlan((BY_INDEX,), sorts=False, is_forced=False), {"things"}, None, None),
        (
            QueryPlan((BY_INDEX,), False, False),
            {"things"},
            "things",
            "finds its row by things_free instead of the",
        ),
        (QueryPlan((BY_INDEX,), False, False), set(), "things", None),
        (
            QueryPlan((TableAccess("tickets", "in_line"), BY_KEY), False, False),
            {"things", "tickets"},
            "things",
            None,
        ),
        (QueryPlan((WHOLE,), sorts=False, is_forced=False), {"things"}, None, "reads all of things"),
        (QueryPlan((WHOLE,), sorts=False, is_forced=False), set(), None, None),
        (QueryPlan((WHOLE,), sorts=False, is_forced=True), set(), None, "reads all of things"),
        (QueryPlan((BY_INDEX,), sorts=True, is_forced=False), {"things"}, None, "sorts many rows"),
        (QueryPlan((BY_INDEX,), sorts=True, is_forced=False), set(), None, None),
        (QueryPlan((BY_INDEX,), sorts=True, is_forced=True), set(), None, "sorts many rows"),
        (QueryPlan((), sorts=False, is_forced=False), {"things"}, "things", None),
    ],
)
def test_judgement_of_a_plan(plan: QueryPlan, big: set[str], keyed: str | None, problem: str | None) -> None:
    found = judge_plan(plan, big, keyed)
    assert (found or "").startswith(problem or "") if problem else found is None


@pytest.fixture
def many() -> Iterator[None]:
    Proxy.objects.bulk_create(Proxy(host=f"h{number}", port=80) for number in range(MANY))
    Ticket.objects.bulk_create(
        Ticket(pool=f"pool {number % 30}", asked_at="2000-01-01T00:00:00Z") for number in range(MANY)
    )
    with connection.cursor() as cursor:
        tables = f"{Proxy._meta.db_table}, {Ticket._meta.db_table}"
        for name in tables.split(", ") if connection.vendor == "sqlite" else [tables]:
            cursor.execute(f"ANALYZE {'TABLE ' if connection.vendor == 'mysql' else ''}{name}")
    yield
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM sqlite_stat1")


def problems(*models: Any) -> dict[tuple[str, str], str | None]:
    found = statements(connection, models)
    return {(one.model, one.name): one.problem for one in found if one.problem}


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_small_tables_are_accepted(rows: int) -> None:
    for model in (Proxy, Device, Poll, Ticket):
        for _ in range(rows):
            new(model)
    assert problems(Proxy, Device, Poll, Ticket) == {}


@pytest.mark.usefixtures("many")
def test_many_rows_are_found_by_index_and_changed_by_key() -> None:
    found = statements(connection, [Proxy, Ticket])
    assert [one.problem for one in found] == [None] * len(found)
    uses = {(one.model, one.name): set(one.uses) for one in found}
    assert "resourcepool_proxy_free" in uses["resourcepool.Proxy", "find free rows"]
    assert "resourcepool_proxy_free" in uses["resourcepool.Proxy", "find free rows while waiting"]
    assert uses["resourcepool.Ticket", "read waiters"] == {"resourcepool_ticket_in_line"}
    for name in ("claim", "release", "renew one", "renew many"):
        assert "resourcepool_proxy_free" not in uses["resourcepool.Proxy", name]


def test_a_claim_finds_its_row_by_key_where_none_is_free() -> None:
    later = timezone.now() + timedelta(days=1)
    Proxy.objects.bulk_create(Proxy(host=f"h{number}", port=80, busy_before=later) for number in range(30))
    uses = {one.name: set(one.uses) for one in statements(connection, [Proxy])}
    assert "resourcepool_proxy_free" not in uses["claim"]


@pytest.mark.usefixtures("many")
def test_a_missing_index_is_reported() -> None:
    (index,) = Proxy._meta.indexes
    with connection.schema_editor() as editor:
        editor.remove_index(Proxy, index)
    try:
        found = problems(Proxy)
    finally:
        with connection.schema_editor() as editor:
            editor.add_index(Proxy, index)
    assert set(found) == {
        ("resourcepool.Proxy", name) for name in ("find free rows", "find free rows while waiting")
    }
    assert "reads all of resourcepool_proxy" in found.values()


def test_all_frequent_statements_are_checked() -> None:
    assert [one.name for one in statements(connection, [Proxy])] == NAMES
    assert [one.name for one in statements(connection, [Ticket])] == [
        "read waiters",
        "read tickets",
        "renew one",
        "renew many",
    ]
    assert [one.name for one in statements(connection, [Poll])] == NAMES[2:]


def test_checks_change_nothing() -> None:
    rows = [new(model) for model in (Proxy, Device, Poll, Ticket)]
    before = [columns(row) for row in rows]
    statements(connection, [Proxy, Device, Poll, Ticket])
    assert [columns(row) for row in rows] == before


def test_a_statement_is_captured_as_sent_by_the_package() -> None:
    row = new(Proxy)
    sql, params = capture_statement(connection, lambda: verbs.release(connection, Proxy, row.pk, 7, 2.5))
    assert sql.startswith("UPDATE ")
    assert tuple(params) == (2_500_000, row.pk, 7)
    assert columns(row)["fence"] == 0


def test_a_function_that_sends_nothing_is_an_error() -> None:
    with pytest.raises(AssertionError, match="sent nothing"):
        capture_statement(connection, lambda: None)

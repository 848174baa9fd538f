"""What the statements about many names cost: each looks where an index leads."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import SemaphorePermit, Ticket
from resourcepool.status.locks.cycles import cycles
from resourcepool.status.locks.lock_status import lock_named, locks
from tests.status.locks.conftest import A, B, lock, permits, waits

pytestmark = [pytest.mark.django_db, pytest.mark.only("mysql")]
MANY = 3_000
SMALL = 300


@pytest.fixture(autouse=True)
def _many_unused() -> None:
    LockRow.objects.bulk_create(LockRow(name=f"unused {number}") for number in range(MANY))
    rows = (SemaphorePermit(key=f"unused {n // 3}#{n % 3}", name=f"unused {n // 3}") for n in range(MANY))
    SemaphorePermit.objects.bulk_create(rows)
    for number in range(20):
        Ticket.objects.bulk_create(
            Ticket(pool=f"testapp.other{number}", asked_at="2026-01-01T00:00:00Z") for _ in range(100)
        )
    lock("busy", A)
    lock("next", B)
    permits("semaphore", "busy", [A, B, ""])
    waits("semaphore", "busy", A)
    waits("lock", "next", A)
    waits("lock", "busy", B)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE TABLE resourcepool_lock, resourcepool_semaphorepermit, resourcepool_ticket")


def looks_at(sql: str) -> int:
    """Return how many rows the server means to read for the costliest table of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN FORMAT=TRADITIONAL {sql}")
        names = [column[0] for column in cursor.description]
        plan = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return max((int(row["rows"] or 0) for row in plan if not str(row["table"]).startswith("<")), default=0)


READS: dict[str, Callable[[], Any]] = {
    "waited": lambda: locks(limit=10, waited=True),
    "both": lambda: locks(limit=10, held=True, waited=True),
    "conditions": lambda: locks(limit=10, kind="condition"),
    "one": lambda: lock_named("busy"),
    "cycles": cycles,
}


def test_no_statement_reads_the_names_that_nobody_uses() -> None:
    for name, read in READS.items():
        with CaptureQueriesContext(connection) as sent:
            assert read() is not None
        costs = {one["sql"]: looks_at(one["sql"]) for one in sent.captured_queries if "SELECT" in one["sql"]}
        assert costs, name
        assert {sql: rows for sql, rows in costs.items() if rows > SMALL} == {}, name

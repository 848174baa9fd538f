"""Among the rows of thousands of names, every statement of a read-write lock finds those of its own by an index."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from resourcepool.db.inspection import inspector
from resourcepool.locks import RWLock
from resourcepool.models import RWLockPermit
from resourcepool.waiting import assignment
from tests.locks.readwrite import lock

NAMES = 1_100
TABLE = RWLockPermit._meta.db_table
INDEXES = ("PRIMARY", TABLE, "rp_rwlockpermit_free")  # what their names begin with


@pytest.mark.only("mysql", "postgresql")
def test_every_statement_finds_its_rows_by_index() -> None:
    rows = [RWLockPermit(key=f"n{name}#{one}", name=f"n{name}") for name in range(NAMES) for one in range(3)]
    RWLockPermit.objects.bulk_create(rows, batch_size=1_000)
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {'TABLE ' if connection.vendor == 'mysql' else ''}{TABLE}")
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
    ours = [(sql, params) for sql, params in sent if TABLE in sql and "INSERT" not in sql]
    assert len(ours) > 6
    for sql, params in ours:
        plan = inspector(connection).explain(sql, params)
        assert all((step.index or "").startswith(INDEXES) for step in plan.steps if step.table == TABLE), sql


class TestStatements:
    def sent(self, statements: list[Any], work: Any) -> list[str]:
        statements.clear()
        work()
        return [one.sql.split()[0] for one in statements if one.thread == "MainThread"]

    def test_of_reading_and_writing_when_nobody_else_does(self, statements: list[Any]) -> None:
        for side in (lock().read(), lock().write(), lock().read()):
            with side:
                pass
        reads, writes = lock().read(), lock().write()
        assert len(self.sent(statements, reads.acquire)) == 1
        assert len(self.sent(statements, reads.release)) == 1
        self.sent(statements, writes.acquire)
        ours = [one.sql for one in statements if RWLockPermit._meta.db_table in one.sql]
        assert [sql.split()[0] for sql in ours] == ["SELECT", "SELECT", "UPDATE", "SELECT"], (
            "read, lock, take, count"
        )
        assert len(self.sent(statements, writes.release)) == 1

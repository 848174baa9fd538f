"""Locks rows in another transaction while a test runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, connections

from resourcepool.db import transactions


@contextmanager
def locked(*rows: Any) -> Iterator[None]:
    """Keep these rows locked, as a holder in the middle of a guarded transaction does, by a connection of their own."""
    other = connections.create_connection("default")
    other.set_autocommit(False)
    try:
        with other.cursor() as cursor:
            for row in rows:
                table, pk = other.ops.quote_name(row._meta.db_table), row._meta.pk
                key = pk.get_db_prep_value(row.pk, other)
                cursor.execute(
                    f"SELECT 1 FROM {table} WHERE {other.ops.quote_name(pk.column)} = %s FOR UPDATE", [key]
                )
                assert cursor.fetchone()
        yield
    finally:
        other.rollback()
        other.close()


def wait_for_a_second_only(monkeypatch: Any) -> None:
    """Have nobody wait for a locked row for longer, where 3 s are promised."""
    monkeypatch.setattr(transactions, "SHORT_LOCK_WAIT", 1)


def lock_wait() -> Any:
    """Return how long this session waits for a locked row."""
    asked = {"mysql": "SELECT @@SESSION.innodb_lock_wait_timeout", "postgresql": "SHOW lock_timeout"}
    with connection.cursor() as cursor:
        cursor.execute(asked[connection.vendor])
        return cursor.fetchone()

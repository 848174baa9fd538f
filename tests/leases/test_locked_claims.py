"""A claim of a row that another transaction locks does not wait."""

from typing import Any

import pytest
from django.db import connection

from resourcepool.db import dialect
from resourcepool.db.dialect.statement import Where
from resourcepool.leases.statements import claim_statement, key
from tests.app.rows import new

SECOND = 1_000_000


@pytest.fixture
def beside(other: Any) -> Any:
    other.set_autocommit(False)
    yield other
    other.close()


def claimed(row: Any) -> int | None:
    sql, _ = claim_statement(connection, type(row), Where(""))
    params = [SECOND, "me", key(connection, type(row), row.pk)]
    return dialect.run(connection, sql, params, dialect.of(connection).fence_after_update)


# MariaDB ends it with an error, at once; on SQLite the whole database is locked.
@pytest.mark.only("oracle_mysql", "postgresql")
def test_it_finds_nothing_and_is_no_error(row: Any, beside: Any) -> None:
    quote, meta = beside.ops.quote_name, row._meta
    with beside.cursor() as cursor:
        sql = f"SELECT 1 FROM {quote(meta.db_table)} WHERE {quote(meta.pk.column)} = %s FOR UPDATE"
        cursor.execute(sql, [key(beside, type(row), row.pk)])
    assert claimed(row) is None
    assert claimed(new(type(row)))
    beside.rollback()
    assert claimed(row)

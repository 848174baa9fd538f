"""Writes rows into the table of proxies, many at once.

By SQL of our own, because Django's ``bulk_create`` spends three times as long on preparing 18 values a row, most of
which are the same in every row.
"""

from collections.abc import Collection, Sequence
from dataclasses import fields
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.constants import OnConflict

from resourcepool import dialect
from resourcepool.proxies.models import Proxy
from resourcepool.proxies.row import IDENTITY, Row


class ProxyTable:
    """The table on one connection. A new proxy is in service and free, like one that was saved."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        given = {one.name for one in fields(Row)}
        columns = [one for one in Proxy._meta.concrete_fields if not one.primary_key]
        self._connection = connection
        self._given = [one for one in columns if one.name in given]
        self._fixed = [one for one in columns if one.name not in given and one.name != "fence"]
        self._fixed_values = [one.get_db_prep_save(one.get_default(), connection) for one in self._fixed]

    def write(self, rows: Sequence[Row], columns: Collection[str] = ()) -> None:
        """Insert these proxies; where there is one already, write these ``columns`` of it.

        Raises:
            IntegrityError: there is one already, and no columns are named.
        """
        update = OnConflict.UPDATE if columns else None
        every = [*self._fixed, *self._given]
        suffix = self._connection.ops.on_conflict_suffix_sql(every, update, columns, IDENTITY)
        quote = self._connection.ops.quote_name
        columns = [quote(str(one.column)) for one in every]
        sql = (
            f"INSERT INTO {quote(Proxy._meta.db_table)} ({', '.join(columns)}, {quote('fence')})"  # noqa: S608 (quoted)
            # MySQL's driver makes one statement of many rows only where all of this are parameters.
            f" VALUES ({', '.join(['%s'] * len(columns))}, %s) {suffix}"
        )
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT {dialect.of(self._connection).micros_now}", ())
            (fence,) = cursor.fetchone()
            cursor.executemany(sql, [self._values(row, fence) for row in rows])

    def _values(self, row: Row, fence: int) -> list[Any]:
        given = (one.get_db_prep_save(getattr(row, one.name), self._connection) for one in self._given)
        return [*self._fixed_values, *given, fence]

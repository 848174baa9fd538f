"""Writes a plan to the database: all of it, or nothing.

By SQL of our own, because Django's ``bulk_create`` spends three times as long on preparing 18 values a row, most of
which are the same in every row.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from django.db import IntegrityError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.constants import OnConflict
from django.utils.translation import gettext_noop as _

from resourcepool import dialect
from resourcepool.database.open_transaction import limit_silence
from resourcepool.database.retry import retrying
from resourcepool.database.short_statements import brief
from resourcepool.events import Sentence
from resourcepool.exceptions import DatabaseUnavailable, ImportRefused
from resourcepool.proxies.fields import IDENTITY
from resourcepool.proxies.import_plan import ImportPlan
from resourcepool.proxies.models import Proxy
from resourcepool.proxies.reading import Row, Tell, silent
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.state import Status

BATCH = 500  # SQLite may allow only 999 values in a list; MariaDB takes statements of 16 MB

Item = TypeVar("Item")


def store(plan: ImportPlan, using: str, reason: str, tell: Tell, actor: str = "") -> int:
    """Do what ``plan`` says in one transaction; returns how many proxies ``actor`` has retired, for ``reason``.

    No lease is touched: what is held and retired, or changed, stays with its holder.

    Raises:
        ImportRefused: somebody else has entered one of the same proxies meanwhile.
        DatabaseUnavailable: rows stayed locked (RowLocked), or the connection was lost (then perhaps after the commit).
    """
    table = ProxyTable(connections[using])
    rows = ResourceQuerySet(model=Proxy, using=using)

    def send() -> int:
        with brief(using):
            limit_silence(connections[using])
            for batch in _batches(plan.new, "stored", tell):
                table.write(batch)
            for writes_password, updates in plan.updates.items():
                columns = sorted(plan.details | ({"password"} if writes_password else set()))
                for batch in _batches(updates, "changed", tell):
                    table.write(batch, columns)
            for pks in _batches(plan.returning):
                rows.filter(pk__in=pks, status=Status.RETIRED).return_to_service(actor=actor)
            in_service = rows.exclude(status=Status.RETIRED)
            return sum(
                in_service.filter(pk__in=pks).retire(reason, actor=actor) for pks in _batches(plan.retiring)
            )

    def settle() -> int:
        raise DatabaseUnavailable(
            f"database {using!r}: the connection was lost while the proxies were stored; import them again: if they"
            " had been stored, that changes nothing"
        )

    try:
        return retrying(connections[using], send, settle=settle)
    except IntegrityError as error:
        raise ImportRefused(
            Sentence(
                _(
                    "not imported, because somebody else has entered some of the same proxies meanwhile; try again"
                )
            )
        ) from error


def _batches(items: Sequence[Item], what: str = "", tell: Tell = silent) -> Iterator[Sequence[Item]]:
    """Yield ``items`` some at a time; after each ``tell`` hears how many are done."""
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]
        tell(what, min(start + BATCH, len(items)), len(items))


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

"""Gives notifications to those who wait in a line: their rows and their tickets change together, or not at all."""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.database.retry import Unsettled, retrying, rows_read
from resourcepool.leases import verbs
from resourcepool.leases.table import table_of
from resourcepool.locks.models import Notification
from resourcepool.waiting import tickets
from resourcepool.waiting.models import Ticket, line_name
from resourcepool.waiting.notices import notify as tell

BATCH = 500  # rows in one statement
EVERYBODY = 2**31


class Chosen(NamedTuple):
    """A ticket that is notified; ``lasts``: microseconds for which the notification is its own; ``fence``: of that."""

    pk: int
    holder: str
    lasts: int
    address: int
    fence: int


class _Texts:
    """The SQL for one database."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        speaks, line, row = dialect.of(connection), tickets.of(connection), table_of(connection, Notification)
        one, quote = line.column, connection.ops.quote_name
        find = f"FROM {line.name} WHERE {line.waits} {line.order} LIMIT %s"
        self.anybody = f"SELECT 1 {find}"
        # Not SKIP LOCKED: who renews its ticket just now waits all the same, and must not be passed over.
        lock = " FOR UPDATE" if connection.features.has_select_for_update else ""
        about = f"{one.id}, {one.holder}, {one.lasts}, {one.address}, {speaks.micros_now}"
        self.choose = f"SELECT {about} {find}{lock}"
        columns = ", ".join([row.pk, quote("name"), row.busy_before, row.fence, row.holder])
        self.add = f"INSERT INTO {row.name} ({columns}) VALUES "  # noqa: S608
        self.added = f"(%s, %s, {speaks.later}, %s, %s)"
        until = speaks.later.replace(speaks.now, speaks.indexed_now).replace("%s", one.lasts)
        self.give = (
            f"UPDATE {line.name} SET {one.is_waiting} = {speaks.false}, {one.fence} = {one.fence} + 1, "  # noqa: S608
            f"{one.busy_before} = {until}, {one.granted} = CASE {one.id}"
        )
        self.to = f" END WHERE {one.id} IN "


@lru_cache
def _texts(vendor: str, alias: str) -> _Texts:
    return _Texts(connections[alias])


def notify(connection: BaseDatabaseWrapper, name: str, most: int) -> int:
    """Notify the first ``most`` who wait in the line of ``name`` now; returns how many these were.

    In an open transaction it takes effect with that.

    Raises:
        DatabaseUnavailable: it is unknown whether they were notified.
    """
    if not connection.in_atomic_block and not _is_anybody_there(connection, name):
        return 0
    count = 0
    while count < most:
        one_try = _Try(connection, name, min(most - count, tickets.MOST))
        told = retrying(connection, one_try.send, settle=one_try.settle)
        count += told
        if told < tickets.MOST:
            break
    return count


def _is_anybody_there(connection: BaseDatabaseWrapper, name: str) -> bool:
    texts = _texts(connection.vendor, connection.alias)
    return bool(rows_read(connection, texts.anybody, [line_name(Notification, name), 1]))


class _Try:
    """One transaction that notifies."""

    def __init__(self, connection: BaseDatabaseWrapper, name: str, most: int) -> None:
        self._connection, self._name, self._most = connection, name, most
        self._texts = _texts(connection.vendor, connection.alias)
        self._chosen: list[Chosen] = []

    def send(self) -> int:
        """Notify them; returns how many."""
        connection, line = self._connection, line_name(Notification, self._name)
        with dialect.brief_transaction(connection):
            found = dialect.run(connection, self._texts.choose, [line, self._most], dialect.all_rows)
            self._chosen = [Chosen(*columns) for columns in found]
            for start in range(0, len(self._chosen), BATCH):
                self._give(self._chosen[start : start + BATCH])
            transaction.on_commit(partial(_tell, connection.alias, self._chosen), using=connection.alias)
        return len(self._chosen)

    def settle(self) -> int:
        """Find out whether they were notified, after the reply to that was lost."""
        pks = [one.pk for one in self._chosen]
        given = Ticket.objects.using(self._connection.alias).filter(pk__in=pks, is_waiting=False)
        rows = verbs.rows_of(self._connection, Notification).filter(pk__in=map(self._key, pks))
        if not given.exists() and not rows.exists():
            raise Unsettled  # or they have left: notifying others, too, is better than nobody
        return len(pks)

    def _give(self, chosen: Sequence[Chosen]) -> None:
        added: list[Any] = []
        granted: list[Any] = []
        for one in chosen:
            key = self._key(one.pk)
            added += [key, self._name, one.lasts, one.fence, one.holder]
            granted += [one.pk, tickets.written([(key, one.fence)])]
        rows = ", ".join([self._texts.added] * len(chosen))
        dialect.run(self._connection, self._texts.add + rows, added, dialect.row_count)
        marks = ", ".join(["%s"] * len(chosen))
        give = f"{self._texts.give}{' WHEN %s THEN %s' * len(chosen)}{self._texts.to}({marks})"
        dialect.run(self._connection, give, [*granted, *(one.pk for one in chosen)], dialect.row_count)

    def _key(self, ticket: int) -> str:
        return Notification.key_of(self._name, ticket)


def _tell(using: str, chosen: Sequence[Chosen]) -> None:
    for one in chosen:
        tell(using, one.pk, one.address)

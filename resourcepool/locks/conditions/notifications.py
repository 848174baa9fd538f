"""Notifications: each is a leased row, which passes to the next waiter if the notified one dies before it goes on."""

import logging
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.database.retry import Unsettled, fetch_rows, retrying
from resourcepool.exceptions import DatabaseUnavailable, LeaseLost
from resourcepool.leases import verbs
from resourcepool.leases.table import table_of
from resourcepool.leases.terms import Terms
from resourcepool.locks.base import Named
from resourcepool.locks.hold import LockLease
from resourcepool.locks.models import Notification
from resourcepool.locks.registry import current_owner, new_holder
from resourcepool.waiting import tickets
from resourcepool.waiting.models import Ticket, line_name
from resourcepool.waiting.request import Request
from resourcepool.waiting.ticket_wakeups import notify as tell

BATCH = 500  # rows in one statement
ALL_WAITERS = 2**31

NotificationLeases = Sequence["NotificationLease"]

logger = logging.getLogger(__name__)


class NotificationLease(LockLease):
    """A notification of this process. Released, it passes to the next in line, unless it was used."""

    is_consumed = False

    def _send_release(self, connection: BaseDatabaseWrapper) -> bool:
        if not self.is_consumed:
            return super()._send_release(connection)
        table = table_of(connection, self.model)
        sql = f"DELETE FROM {table.name} WHERE {table.pk} = %s AND {table.fence} = %s"  # noqa: S608 (quoted names)
        remove = partial(dialect.run, connection, sql, [self.pk, self.fence], dialect.row_count)
        return retrying(connection, remove) > 0


class NotificationSource(Named):
    """The waiters of a condition or barrier: the ``Source`` of their notifications, of which none are ever free."""

    model, lease = Notification, NotificationLease

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        """Do nothing: there are no rows until a waiter is notified."""

    def _wait_request(self, seconds: float) -> Request:
        terms = Terms(self._ttl, new_holder(current_owner()), holder_is_unique=True)
        return Request(terms, timeout=seconds, selector=self.name, fifo_once=True, ends_session=True)


def consume(notified: NotificationLeases) -> None:
    """Remove notifications that have had their effect; those that cannot be removed pass on."""
    for lease in notified:
        lease.is_consumed = True
        lease.release_or_log()


def pass_on_unconsumed(notified: NotificationLeases) -> int:
    """Pass on notifications whose ``consume`` was interrupted; return how many it had removed."""
    removed = 0
    for lease in notified:
        lease.is_consumed = False
        try:
            lease.release_or_expire()
        except LeaseLost:
            removed += 1
        except DatabaseUnavailable as error:
            logger.warning("a notification that was not used passes on when it expires: %s", error)
    return removed


def notify(connection: BaseDatabaseWrapper, name: str, most: int) -> int:
    """Notify the first ``most`` waiters in the line of ``name``, with the caller's transaction; return how many."""
    if not connection.in_atomic_block:
        anybody = _texts(connection.vendor, connection.alias).anybody
        if not fetch_rows(connection, anybody, [line_name(Notification, name), 1]):
            return 0
    count = 0
    while count < most:
        one_try = _NotifyTransaction(connection, name, min(most - count, tickets.MAX_TICKETS))
        told = retrying(connection, one_try.send, settle=one_try.settle)
        count += told
        if told < tickets.MAX_TICKETS:
            break
    return count


class _Chosen(NamedTuple):
    """A ticket to notify; ``grant_us``, in microseconds, and ``fence`` are those of its notification."""

    pk: int
    holder: str
    grant_us: int
    address: int
    fence: int


class _Statements:
    """The SQL for one database."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        db_dialect, line, row = (
            dialect.of(connection),
            tickets.of(connection),
            table_of(connection, Notification),
        )
        one, quote = line.column, connection.ops.quote_name
        find = f"FROM {line.name} WHERE {line.waits} {line.order} LIMIT %s"
        self.anybody = f"SELECT 1 {find}"
        # Not SKIP LOCKED: a waiter that is just renewing its ticket must not be passed over.
        lock = " FOR UPDATE" if connection.features.has_select_for_update else ""
        about = f"{one.id}, {one.holder}, {one.grant_us}, {one.address}, {db_dialect.micros_now}"
        self.choose = f"SELECT {about} {find}{lock}"
        columns = ", ".join([row.pk, quote("name"), row.busy_before, row.fence, row.holder])
        self.add = f"INSERT INTO {row.name} ({columns}) VALUES "  # noqa: S608
        self.added = f"(%s, %s, {db_dialect.later}, %s, %s)"
        until = db_dialect.indexed_later.replace("%s", one.grant_us)
        self.give = (
            f"UPDATE {line.name} SET {one.is_waiting} = {db_dialect.false}, {one.fence} = {one.fence} + 1, "  # noqa: S608
            f"{one.busy_before} = {until}, {one.granted} = CASE {one.id}"
        )
        self.to = f" END WHERE {one.id} IN "


@lru_cache
def _texts(vendor: str, alias: str) -> _Statements:
    return _Statements(connections[alias])


class _NotifyTransaction:
    """One transaction that notifies: rows and tickets change together, or not at all."""

    def __init__(self, connection: BaseDatabaseWrapper, name: str, most: int) -> None:
        self._connection, self._name, self._most = connection, name, most
        self._texts = _texts(connection.vendor, connection.alias)
        self._chosen: list[_Chosen] = []

    def send(self) -> int:
        connection, line = self._connection, line_name(Notification, self._name)
        with dialect.short_transaction(connection):
            found = dialect.run(connection, self._texts.choose, [line, self._most], dialect.all_rows)
            self._chosen = [_Chosen(*columns) for columns in found]
            for start in range(0, len(self._chosen), BATCH):
                self._give(self._chosen[start : start + BATCH])
            transaction.on_commit(partial(_tell, connection.alias, self._chosen), using=connection.alias)
        return len(self._chosen)

    def settle(self) -> int:
        """Find out whether they were notified, after a lost reply."""
        pks = [one.pk for one in self._chosen]
        given = Ticket.objects.using(self._connection.alias).filter(pk__in=pks, is_waiting=False)
        rows = verbs.rows_of(self._connection, Notification).filter(pk__in=map(self._key, pks))
        if not given.exists() and not rows.exists():
            raise Unsettled  # or they have left: better too many notifications than none
        return len(pks)

    def _give(self, chosen: Sequence[_Chosen]) -> None:
        added: list[Any] = []
        granted: list[Any] = []
        for one in chosen:
            key = self._key(one.pk)
            added += [key, self._name, one.grant_us, one.fence, one.holder]
            granted += [one.pk, tickets.written([(key, one.fence)])]
        rows = ", ".join([self._texts.added] * len(chosen))
        dialect.run(self._connection, self._texts.add + rows, added, dialect.row_count)
        marks = ", ".join(["%s"] * len(chosen))
        give = f"{self._texts.give}{' WHEN %s THEN %s' * len(chosen)}{self._texts.to}({marks})"
        dialect.run(self._connection, give, [*granted, *(one.pk for one in chosen)], dialect.row_count)

    def _key(self, ticket: int) -> str:
        return Notification.key_of(self._name, ticket)


def _tell(using: str, chosen: Sequence[_Chosen]) -> None:
    for one in chosen:
        tell(using, one.pk, one.address)

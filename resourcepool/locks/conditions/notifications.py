"""Notifications: leased rows that pass to the next waiter if the notified one crashes before it continues."""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect, hints
from resourcepool.database.batches import batched
from resourcepool.database.retry import Unsettled, fetch_rows, retrying
from resourcepool.dialect import cached_per_database
from resourcepool.exceptions import DatabaseUnavailable, LeaseLost
from resourcepool.leases import verbs
from resourcepool.leases.table import table_of
from resourcepool.leases.terms import Request, Terms
from resourcepool.locks.base import Named
from resourcepool.locks.hold import LockLease
from resourcepool.locks.models import AbstractNotification
from resourcepool.locks.registry import current_owner, new_holder
from resourcepool.waiting import tickets
from resourcepool.waiting.models import Ticket, line_name

BATCH = 500  # rows in one statement
ALL_WAITERS = 2**31

NotificationLeases = Sequence["NotificationLease"]

logger = logging.getLogger(__name__)


class NotificationLease(LockLease):
    """A notification of this process. On release it passes to the next waiter, unless it was consumed."""

    is_consumed = False

    def _send_release(self, connection: BaseDatabaseWrapper) -> bool:
        if not self.is_consumed:
            return super()._send_release(connection)
        return verbs.remove(connection, self.model, self.pk, self.fence)


class NotificationSource(Named):
    """The ``Source`` of a waiter's notification; none is ever free."""

    model: ClassVar[type[AbstractNotification]]
    lease = NotificationLease

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        """Do nothing: rows exist only after a notification."""

    def _wait_request(self, seconds: float) -> Request:
        terms = Terms(self._ttl, new_holder(current_owner()), holder_is_unique=True)
        return Request(terms, timeout=seconds, selector=self.name, fifo_once=True, ends_session=True)


def consume(notified: NotificationLeases) -> None:
    """Remove notifications that had their effect; those that cannot be removed pass to other waiters."""
    for lease in notified:
        lease.is_consumed = True
        lease._release_quietly()


def pass_on_unconsumed(notified: NotificationLeases) -> int:
    """Pass on notifications whose ``consume`` was interrupted; return how many were already removed."""
    removed = 0
    for lease in notified:
        lease.is_consumed = False
        try:
            lease.release()
        except LeaseLost:
            removed += 1
        except DatabaseUnavailable as error:
            logger.warning("an unused notification passes to the next waiter when it expires: %s", error)
    return removed


def notify(connection: BaseDatabaseWrapper, model: type[AbstractNotification], name: str, most: int) -> int:
    """Notify the first ``most`` waiters for ``name``, with the caller's transaction; return how many."""
    if not connection.in_atomic_block:
        anybody = _statements_of(connection, model).anybody
        if not fetch_rows(connection, anybody, [line_name(model, name), 1]):
            return 0
    count = 0
    while count < most:
        attempt = _NotifyTransaction(connection, model, name, min(most - count, tickets.MAX_TICKETS))
        notified = retrying(connection, attempt.send, settle=attempt.settle)
        count += notified
        if notified < tickets.MAX_TICKETS:
            break
    return count


class _Chosen(NamedTuple):
    """A ticket to notify; ``grant_us`` (microseconds) and ``fence`` become those of its notification."""

    pk: int
    holder: str
    grant_us: int
    address: int
    fence: int


class _Statements:
    """The SQL for one database."""

    def __init__(self, connection: BaseDatabaseWrapper, model: type[AbstractNotification]) -> None:
        db_dialect, line, row = dialect.of(connection), tickets.of(connection), table_of(connection, model)
        one, quote = line.column, connection.ops.quote_name
        find = f"FROM {line.name} WHERE {line.waits} {line.order} LIMIT %s"
        self.anybody = f"SELECT 1 {find}"
        # Not SKIP LOCKED: a waiter that is renewing its ticket must not be skipped.
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


_statements_of = cached_per_database(_Statements)


class _NotifyTransaction:
    """One transaction that adds notifications and updates their tickets."""

    def __init__(
        self, connection: BaseDatabaseWrapper, model: type[AbstractNotification], name: str, most: int
    ) -> None:
        self._connection, self._model, self._name, self._most = connection, model, name, most
        self._texts = _statements_of(connection, model)
        self._chosen: list[_Chosen] = []

    def send(self) -> int:
        connection, line = self._connection, line_name(self._model, self._name)
        with dialect.short_transaction(connection):
            rows = dialect.run(connection, self._texts.choose, [line, self._most], dialect.all_rows)
            self._chosen = [_Chosen(*columns) for columns in rows]
            for batch in batched(self._chosen, BATCH):
                self._give(batch)
            transaction.on_commit(partial(_wake, connection.alias, self._chosen), using=connection.alias)
        return len(self._chosen)

    def settle(self) -> int:
        """Return how many were notified, after a lost reply; raises Unsettled."""
        pks = [ticket.pk for ticket in self._chosen]
        given = Ticket.objects.using(self._connection.alias).filter(pk__in=pks, is_waiting=False)
        rows = verbs.rows_of(self._connection, self._model).filter(pk__in=map(self._key, pks))
        if not given.exists() and not rows.exists():
            raise Unsettled  # or they have left: too many notifications are better than none
        return len(pks)

    def _give(self, chosen: Sequence[_Chosen]) -> None:
        added: list[Any] = []
        granted: list[Any] = []
        for ticket in chosen:
            key = self._key(ticket.pk)
            added += [key, self._name, ticket.grant_us, ticket.fence, ticket.holder]
            granted += [ticket.pk, tickets.written([(key, ticket.fence)])]
        rows = ", ".join([self._texts.added] * len(chosen))
        dialect.run(self._connection, self._texts.add + rows, added, dialect.row_count)
        marks = ", ".join(["%s"] * len(chosen))
        give = f"{self._texts.give}{' WHEN %s THEN %s' * len(chosen)}{self._texts.to}({marks})"
        dialect.run(self._connection, give, [*granted, *(ticket.pk for ticket in chosen)], dialect.row_count)

    def _key(self, ticket: int) -> str:
        return self._model.key_of(self._name, ticket)


def _wake(using: str, chosen: Sequence[_Chosen]) -> None:
    for ticket in chosen:
        hints.notify(using, ticket.pk, ticket.address)

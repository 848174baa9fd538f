"""Notifications: leased rows that pass to the next waiter if the notified one crashes before it continues."""

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, F, Value, When

from resourcepool import hints
from resourcepool.db.dialect import DbLater, DbMicros
from resourcepool.db.retry import Unsettled, retrying
from resourcepool.db.rows import batched
from resourcepool.db.transactions import short_transaction
from resourcepool.leases import verbs
from resourcepool.leases.terms import Request
from resourcepool.locks.base import Named
from resourcepool.locks.lockable import LockLease
from resourcepool.locks.models import AbstractNotification
from resourcepool.waiting import tickets
from resourcepool.waiting.models import Ticket

BATCH = 500  # rows in one statement
ALL_WAITERS = 2**31

Notification = type[AbstractNotification]
NotificationLeases = Sequence["NotificationLease"]


class NotificationLease(LockLease):
    """A notification of this process. On release it passes to the next waiter, unless it was consumed."""

    is_consumed = False

    def _send_release(self, connection: BaseDatabaseWrapper) -> bool:
        if not self.is_consumed:
            return super()._send_release(connection)
        return verbs.remove(connection, self.model, self.pk, self.fence)


class NotificationSource(Named):
    """The ``Source`` of a waiter's notification; none is ever free."""

    model: ClassVar[Notification]
    lease = NotificationLease

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        """Do nothing: rows exist only after a notification."""

    def _wait_request(self, seconds: float) -> Request:
        return dataclasses.replace(self._request(seconds), fifo_once=True, ends_session=True)


def consume(notified: NotificationLeases) -> None:
    """Remove notifications that had their effect; those that cannot be removed pass to other waiters."""
    for lease in notified:
        lease.is_consumed = True
        lease._release_quietly()


def notify(connection: BaseDatabaseWrapper, model: Notification, name: str, most: int) -> int:
    """Notify the first ``most`` waiters for ``name``, with the caller's transaction; return how many."""
    if not connection.in_atomic_block and not retrying(connection, waiting(connection, model, name).exists):
        return 0
    count = 0
    while count < most:
        attempt = _NotifyTransaction(connection, model, name, min(most - count, tickets.MAX_TICKETS))
        notified = retrying(connection, attempt.send, settle=attempt.settle)
        count += notified
        if notified < tickets.MAX_TICKETS:
            break
    return count


def waiting(connection: BaseDatabaseWrapper, model: Notification, name: str) -> Any:
    """Return the tickets of the waiters for ``name``, in order."""
    return Ticket.objects.using(connection.alias).in_line_for(model, name).waiting().order_by("priority", "pk")


class _Chosen(NamedTuple):
    """A ticket to notify; ``grant_us`` (microseconds) and ``fence`` become those of its notification."""

    pk: int
    holder: str
    grant_us: int
    address: int
    fence: int

    @property
    def until(self) -> DbLater:
        return DbLater(self.grant_us / 1_000_000)


class _NotifyTransaction:
    """One transaction that adds notifications and updates their tickets."""

    def __init__(self, connection: BaseDatabaseWrapper, model: Notification, name: str, most: int) -> None:
        self._connection, self._model, self._name, self._most = connection, model, name, most
        self._chosen: list[_Chosen] = []

    def send(self) -> int:
        with short_transaction(self._connection):
            # Not SKIP LOCKED: a waiter that is renewing its ticket must not be skipped.
            locked = waiting(self._connection, self._model, self._name).select_for_update()
            columns = locked.values_list("pk", "holder", "grant_us", "address", DbMicros())
            self._chosen = [_Chosen(*row) for row in columns[: self._most]]
            for batch in batched(self._chosen, BATCH):
                self._add(batch)
                self._give(batch)
            transaction.on_commit(
                partial(_wake, self._connection.alias, self._chosen), using=self._connection.alias
            )
        return len(self._chosen)

    def settle(self) -> int:
        """Return how many were notified, after a lost reply; raises Unsettled."""
        pks = [ticket.pk for ticket in self._chosen]
        given = Ticket.objects.using(self._connection.alias).filter(pk__in=pks, is_waiting=False)
        rows = verbs.rows_of(self._connection, self._model).filter(pk__in=map(self._key, pks))
        if not given.exists() and not rows.exists():
            raise Unsettled  # or they have left: too many notifications are better than none
        return len(pks)

    def _add(self, chosen: Sequence[_Chosen]) -> None:
        verbs.rows_of(self._connection, self._model).bulk_create(
            self._model(
                key=self._key(ticket.pk),
                name=self._name,
                busy_before=ticket.until,
                fence=ticket.fence,
                holder=ticket.holder,
            )
            for ticket in chosen
        )

    def _give(self, chosen: Sequence[_Chosen]) -> None:
        rows = {ticket.pk: tickets.written([(self._key(ticket.pk), ticket.fence)]) for ticket in chosen}
        Ticket.objects.using(self._connection.alias).filter(pk__in=rows).update(
            is_waiting=False,
            fence=F("fence") + 1,
            busy_before=Case(*(When(pk=ticket.pk, then=ticket.until) for ticket in chosen)),
            granted=Case(*(When(pk=pk, then=Value(row)) for pk, row in rows.items())),
        )

    def _key(self, ticket: int) -> str:
        return self._model.key_of(self._name, ticket)


def _wake(using: str, chosen: Sequence[_Chosen]) -> None:
    for ticket in chosen:
        hints.notify(using, ticket.pk, ticket.address)

"""A line in which one waits to be notified: a lease each, so that it passes on if whoever was notified dies."""

import logging
from collections.abc import Sequence
from functools import partial

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.database.retry import retrying
from resourcepool.exceptions import DatabaseUnavailable, LeaseLost
from resourcepool.leases.table import table_of
from resourcepool.leases.terms import Terms
from resourcepool.locks.hold import LockLease
from resourcepool.locks.models import Notification
from resourcepool.locks.owners import current, holder_of
from resourcepool.locks.rows import Named
from resourcepool.waiting.request import Request

logger = logging.getLogger(__name__)

Notified = Sequence["NotificationLease"]


class NotificationLease(LockLease):
    """A notification of this process: released it passes to the next in line, unless it has been used."""

    is_used = False

    def _send_release(self, connection: BaseDatabaseWrapper) -> bool:
        if not self.is_used:
            return super()._send_release(connection)
        table = table_of(connection, self.model)
        sql = f"DELETE FROM {table.name} WHERE {table.pk} = %s AND {table.fence} = %s"  # noqa: S608 (quoted names)
        remove = partial(dialect.run, connection, sql, [self.pk, self.fence], dialect.row_count)
        return retrying(connection, remove) > 0


class NotifiedLine(Named):
    """Those who wait to be notified under a name. The ``Source`` of their notifications, which are no one's before."""

    model, lease = Notification, NotificationLease

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        """Do nothing: there are no rows unless somebody was notified."""

    def _place(self, seconds: float) -> Request:
        """Return the request of the caller for a place in line."""
        terms = Terms(self._ttl, holder_of(current()), holder_is_unique=True)
        return Request(terms, timeout=seconds, selector=self.name, stands_first=True)


def use(notified: Notified) -> None:
    """Remove notifications that have done what they were given for; those that cannot be removed now pass on."""
    for lease in notified:
        lease.is_used = True
        lease.give_back_or_expire()


def unused(notified: Notified) -> int:
    """Pass on notifications whose ``use`` was interrupted; return how many were removed before."""
    removed = 0
    for lease in notified:
        lease.is_used = False
        try:
            lease.give_back()
        except LeaseLost:
            removed += 1
        except DatabaseUnavailable as error:
            logger.warning("a notification that was not used passes on when it expires: %s", error)
    return removed

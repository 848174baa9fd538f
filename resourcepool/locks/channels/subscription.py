"""The lease of a subscription: one process at a time reads it, others wait for it."""

import contextlib
import datetime
import json
from functools import partial
from typing import Any, ClassVar, Literal, cast

from django.db import IntegrityError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet, Value
from django.db.models.functions import Greatest

from resourcepool import hints, options
from resourcepool.db.dialect import DbNow, in_columns
from resourcepool.db.open_transaction import refuse_open_transaction
from resourcepool.db.retry import retrying
from resourcepool.db.timeouts import TIMEOUT_GRACE, statement_timeout
from resourcepool.events import Sentence, sentence_for
from resourcepool.exceptions import AcquireTimeout, BadOption, DatabaseUnavailable, LeaseLost
from resourcepool.leases import verbs
from resourcepool.leases.lease import Lease
from resourcepool.leases.terms import Grant, Request, Terms, default_holder
from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow, Subscription
from resourcepool.signals import EventKind, RowEvent, emit
from resourcepool.translation import gettext_noop as _
from resourcepool.waiting import release

TRIES = 3  # attempts to add a row while others remove the channel
MAX_NUMBER = 2**62

From = Literal["now", "start"] | int | datetime.datetime


class SubscriptionLease(Lease):
    """The right to read a subscription and move its cursor. See ``Lease``."""

    _next_in_line: ClassVar[Any] = release

    def ensure_ours(self) -> None:
        """Raise LeaseFromAnotherProcess in a fork of its process."""
        self._check_process()

    def store(self, cursor: int, missed: int) -> bool:
        """Move the cursor forward, never back; False: the lease is lost.

        The stored cursor may be ahead of this process after a commit whose reply was lost.
        """
        forward = Greatest("cursor", Value(cursor))
        return bool(retrying(connections[self.using], lambda: self._live.update(cursor=forward, missed=missed)))

    def store_once(self, cursor: int, missed: int) -> bool:
        """Move the cursor forward; False: it was already there, or the lease is lost."""
        behind = self._live.filter(cursor__lt=cursor)
        return bool(retrying(connections[self.using], lambda: behind.update(cursor=cursor, missed=missed)))

    def has_stored(self, cursor: int) -> bool:
        return retrying(connections[self.using], self._live.filter(cursor__gte=cursor).exists)

    @property
    def _live(self) -> QuerySet[Subscription]:
        granted = Subscription.objects.using(self.using).filter(pk=self.pk, fence=self.fence)
        return granted.filter(busy_before__gt=DbNow())

    def emit_missed(self, channel: str, name: str, first: int, last: int) -> None:
        reason = sentence_for("messages_missed", name=f"{channel}/{name}", first=first, last=last)
        emit(RowEvent(EventKind.MISSED, self.model, self.using, self.pk, self.fence, self.holder, reason))


class SubscriptionSource:
    """The ``waiting.source.Source`` of the one row of a subscription.

    Attributes:
        channel_row: the channel's row, added if it is missing.
        name: the subscription's name; random if it is not durable.
    """

    model = Subscription

    def __init__(self, using: str, channel_row: ChannelRow, name: str | None, start: From, ttl: float) -> None:
        self.using, self.channel_row, self._start = using, channel_row, start
        self.is_durable, self.name = name is not None, name or default_holder()
        self._ttl, self._pk = ttl, 0
        self._has_begun = False

    @property
    def display_name(self) -> str:
        """The name; "" if it is random."""
        return self.name if self.is_durable else ""

    def ensure_row(self) -> None:
        """Add the row if it is missing. Raises ClaimInTransaction, LeaseLost, DatabaseUnavailable."""
        refuse_open_transaction(connections[self.using])
        with statement_timeout():
            retrying(connections[self.using], self._ensure_row)

    def begin(self, lease: SubscriptionLease) -> Subscription | None:
        """Store this process's address for hints; return the row with its channel. Raises LeaseLost.

        None: the lease was lost after a long pause, or the row removed; try again.
        """
        connection = connections[self.using]
        rows = Subscription.objects.using(self.using).filter(pk=lease.pk, fence=lease.fence)
        if not retrying(connection, lambda: rows.update(address=hints.address())):
            return None
        row: Subscription | None = retrying(connection, rows.select_related("channel").first)
        if row is None:
            lease.ensure_held()
            raise LeaseLost(f"{lease} is lost: its row was deleted")
        self._has_begun = True
        return row

    def leave(self, lease: SubscriptionLease) -> None:
        """Release it; remove its row if it is not durable."""
        lease._release_quietly()
        if not self.is_durable:
            rows = Subscription.objects.using(self.using).filter(pk=lease.pk, is_durable=False)
            retrying(connections[self.using], partial(rows._raw_delete, self.using))

    def _ensure_row(self) -> None:
        rows = Subscription.objects.using(self.using)
        pks = rows.filter(channel_id=self.channel_row.name, name=self.name).values_list("pk", flat=True)
        pk = pks.first()
        if pk is None and self.is_durable and self._has_begun:
            raise LeaseLost(f"subscription {self.name!r} of channel {self.channel_row.name!r} was removed")
        tries = 0
        while pk is None and tries < TRIES:
            pk, tries = self._add(rows) or pks.first(), tries + 1
        if pk is None:
            raise LeaseLost(f"channel {self.channel_row.name!r} is being removed")
        self._pk = int(pk)

    def _add(self, rows: QuerySet[Subscription]) -> int | None:
        """Add the row with the channel locked; None: the channel was removed, or another process added the row."""
        self.channel_row.ensure(self.using)
        channel = ChannelRow.objects.using(self.using).filter(pk=self.channel_row.name).select_for_update()
        try:
            with transaction.atomic(using=self.using):
                last = channel.values_list("last", flat=True).first()
                if last is None:  # removed: the row must not outlive the channel
                    return None
                named = {"channel_id": self.channel_row.name, "name": self.name}
                row = rows.create(**named, is_durable=self.is_durable, cursor=self._first_cursor(last))
                return int(row.pk)
        except IntegrityError:
            return None

    def _first_cursor(self, last: int) -> int:
        start, messages = self._start, MessageRow.objects.using(self.using)
        if isinstance(start, int):
            return start - 1
        if start == "now":
            return last
        wanted = messages.filter(channel_id=self.channel_row.name)
        if isinstance(start, datetime.datetime):
            at = in_columns(start, connections[self.using])
            wanted = wanted.filter(published_at__gte=at).order_by("published_at", "number")
        else:
            wanted = wanted.order_by("number")
        first: int | None = wanted.values_list("number", flat=True).first()
        return last if first is None else first - 1

    def request(self, wait: float) -> Request:
        terms = Terms(self._ttl, default_holder(), holder_is_unique=True)
        return Request(terms, timeout=wait, selector=json.dumps(self._pk))

    # ``waiting.source.Source``

    def claim_free(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        grant = verbs.claim(connection, self.model, self._pk, request.terms)
        return None if grant is None else [grant]

    def handle(self, using: str, grant: Grant, request: Request) -> SubscriptionLease:
        return SubscriptionLease(self.model, using, grant, request.terms)

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        retrying(connection, self._ensure_row)

    def timed_out(self, request: Request, holder: str, error: Exception | None) -> AcquireTimeout:
        reason = f": {error}" if error else self._reader_text()
        called = f"subscription {self.name!r} of channel {self.channel_row.name!r}"
        return AcquireTimeout(f"{called} did not become free{request.within}{reason}")

    def _reader_text(self) -> str:
        rows = Subscription.objects.using(self.using).filter(pk=self._pk, busy_before__gt=DbNow())
        with contextlib.suppress(DatabaseUnavailable), statement_timeout(TIMEOUT_GRACE):
            if holder := retrying(connections[self.using], rows.values_list("holder", flat=True).first):
                return f": read by {holder}"
        return ""


def checked_start(value: object) -> From:
    """Return ``value`` if it is "now", "start", a number or a datetime; raises BadOption."""
    if isinstance(value, str) and value in ("now", "start"):
        return cast(From, value)
    if isinstance(value, datetime.datetime):
        return options.moment("from_", value)
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_NUMBER:
        return value
    allowed = Sentence(_('"now", "start", the number of a message (1 or more), or a datetime'))
    raise BadOption("from_", value, allowed)

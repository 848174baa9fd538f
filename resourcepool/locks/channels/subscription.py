"""The lease of a subscription: one process at a time reads under a name, and others wait for it in line."""

import contextlib
import datetime
import json
from functools import partial

from django.db import IntegrityError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet, Value
from django.db.models.functions import Greatest

from resourcepool import hints
from resourcepool.database.answers import A_LITTLE, answer_timeout
from resourcepool.database.retry import retrying
from resourcepool.dialect import DbNow, in_columns
from resourcepool.events import say
from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable, LeaseLost
from resourcepool.leases import verbs
from resourcepool.leases.terms import Grant, Terms, default_holder
from resourcepool.locks.channels.checking import From
from resourcepool.locks.channels.models import Broadcast, BroadcastMessage, Subscription
from resourcepool.locks.channels.publishing import make
from resourcepool.signals import Fact, What, tell
from resourcepool.waiting.lease import AwaitedLease
from resourcepool.waiting.request import Request, refuse_open_transaction

TRIES = 3  # to add a row while others remove the channel


class SubscriptionLease(AwaitedLease):
    """The right to read a subscription and to move its cursor. See ``Lease``."""

    def ensure_ours(self) -> None:
        """Raise LeaseFromAnotherProcess in a fork of its process."""
        self._check_process()

    def store(self, cursor: int, missed: int) -> bool:
        """Move the cursor forward, never back; False: the lease is lost.

        The cursor may be further than this process knows: it is stored in transactions, whose commit may get no answer.
        """
        forward = Greatest("cursor", Value(cursor))
        return bool(retrying(connections[self.using], lambda: self._live.update(cursor=forward, missed=missed)))

    def store_once(self, cursor: int, missed: int) -> bool:
        """Move the cursor forward; False: it was there already, or the lease is lost."""
        behind = self._live.filter(cursor__lt=cursor)
        return bool(retrying(connections[self.using], lambda: behind.update(cursor=cursor, missed=missed)))

    def has_stored(self, cursor: int) -> bool:
        return retrying(connections[self.using], self._live.filter(cursor__gte=cursor).exists)

    @property
    def _live(self) -> QuerySet[Subscription]:
        mine = Subscription.objects.using(self.using).filter(pk=self.pk, fence=self.fence)
        return mine.filter(busy_before__gt=DbNow())

    def tell_missed(self, channel: str, name: str, first: int, last: int) -> None:
        reason = say("messages_missed", name=f"{channel}/{name}", first=first, last=last)
        tell(Fact(What.MISSED, self.model, self.using, self.pk, self.fence, self.holder, reason))


class SubscriptionSource:
    """The ``waiting.request.Source`` of the one row of a subscription.

    Attributes:
        broadcast: the channel's row, as it is added if there is none.
        name: of the subscription; random if that is not durable.
    """

    model = Subscription

    def __init__(self, using: str, broadcast: Broadcast, name: str | None, start: From, ttl: float) -> None:
        self.using, self.broadcast, self._start = using, broadcast, start
        self.is_durable, self.name = name is not None, name or default_holder()
        self._ttl, self._pk = ttl, 0
        self._was_taken = False

    @property
    def shown(self) -> str:
        """The name; "" if it is random."""
        return self.name if self.is_durable else ""

    def find(self) -> None:
        """Add the row if there is none. Raises ClaimInTransaction, LeaseLost, DatabaseUnavailable."""
        refuse_open_transaction(connections[self.using], self.request(0.0))
        with answer_timeout():
            retrying(connections[self.using], self._find)

    def begin(self, lease: SubscriptionLease) -> Subscription | None:
        """Store where hints reach this process; return the row, with its channel. Raises LeaseLost.

        None: this process stood still for too long and lost it, or it was removed: try again.
        """
        connection = connections[self.using]
        rows = Subscription.objects.using(self.using).filter(pk=lease.pk, fence=lease.fence)
        if not retrying(connection, lambda: rows.update(address=hints.address())):
            return None
        row: Subscription | None = retrying(connection, rows.select_related("channel").first)
        if row is None:
            lease.ensure_held()
            raise LeaseLost(f"{lease} is lost: its row was deleted")
        self._was_taken = True
        return row

    def leave(self, lease: SubscriptionLease) -> None:
        """Release it; if it is not durable, remove its row."""
        lease.give_back_or_expire()
        if not self.is_durable:
            rows = Subscription.objects.using(self.using).filter(pk=lease.pk, is_durable=False)
            retrying(connections[self.using], partial(rows._raw_delete, self.using))

    def _find(self) -> None:
        rows = Subscription.objects.using(self.using)
        found = rows.filter(channel_id=self.broadcast.name, name=self.name).values_list("pk", flat=True)
        pk = found.first()
        if pk is None and self.is_durable and self._was_taken:
            raise LeaseLost(f"subscription {self.name!r} of channel {self.broadcast.name!r} was removed")
        tries = 0
        while pk is None and tries < TRIES:
            pk, tries = self._add(rows) or found.first(), tries + 1
        if pk is None:
            raise LeaseLost(f"channel {self.broadcast.name!r} is being removed")
        self._pk = int(pk)

    def _add(self, rows: QuerySet[Subscription]) -> int | None:
        """Add the row while the channel is locked; None: the channel was removed, or another process was first."""
        make(self.using, self.broadcast)
        channel = Broadcast.objects.using(self.using).filter(pk=self.broadcast.name).select_for_update()
        try:
            with transaction.atomic(using=self.using):
                last = channel.values_list("last", flat=True).first()
                if last is None:  # or the row would outlive the channel
                    return None
                named = {"channel_id": self.broadcast.name, "name": self.name}
                row = rows.create(**named, is_durable=self.is_durable, cursor=self._before_start(last))
                return int(row.pk)
        except IntegrityError:
            return None

    def _before_start(self, last: int) -> int:
        start, messages = self._start, BroadcastMessage.objects.using(self.using)
        if isinstance(start, int):
            return start - 1
        if start == "now":
            return last
        wanted = messages.filter(channel_id=self.broadcast.name)
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

    # What waiting needs: see ``waiting.request.Source``

    def claim_free(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        grant = verbs.claim(connection, self.model, self._pk, request.terms)
        return None if grant is None else [grant]

    def handle(self, using: str, grant: Grant, request: Request) -> SubscriptionLease:
        return SubscriptionLease(self.model, using, grant, request.terms)

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        retrying(connection, self._find)

    def timed_out(self, request: Request, holder: str, trouble: Exception | None) -> AcquireTimeout:
        why = f": {trouble}" if trouble else self._who_reads()
        where = f"subscription {self.name!r} of channel {self.broadcast.name!r}"
        return AcquireTimeout(f"{where} did not come free{request.within}{why}")

    def _who_reads(self) -> str:
        rows = Subscription.objects.using(self.using).filter(pk=self._pk, busy_before__gt=DbNow())
        with contextlib.suppress(DatabaseUnavailable), answer_timeout(A_LITTLE):
            if holder := retrying(connections[self.using], rows.values_list("holder", flat=True).first):
                return f": {holder} reads it"
        return ""

"""Publishing: two statements in one transaction, the first of which locks the channel until the commit.

So numbers become visible in order and without gaps: a reader that sees number 8 could see 7. Those of an auto-increment
column, which are taken before the commit, do not.
"""

import contextlib
from collections.abc import Sequence

from django.db import IntegrityError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Min

from resourcepool import dialect
from resourcepool.database.batches import batches
from resourcepool.exceptions import ChannelFull
from resourcepool.leases.terms import default_holder
from resourcepool.locks.channels.models import Broadcast, BroadcastMessage, Subscription

BATCH = 100  # messages in a statement, at most


class _Published(Exception):
    """An earlier try was committed, but its reply was lost."""


class Publication:
    """Messages to publish together; ``send`` may be repeated.

    Args:
        broadcast: the row to add if there is no channel of this name.
        payloads: as JSON, at least one.
        most: how many messages a durable subscription may have to read; None: any number.
    """

    def __init__(self, using: str, broadcast: Broadcast, payloads: Sequence[str], most: int | None) -> None:
        self._using, self._broadcast, self._payloads, self._most = using, broadcast, payloads, most
        self._publisher = default_holder()  # unique to this publication
        self._number: int | None = None

    def send(self) -> int:
        """Publish them, in the caller's transaction if one is open; return the last number. Raises ChannelFull."""
        connection = connections[self._using]
        try:
            with transaction.atomic(using=self._using):
                number = self._next_number(connection)
                if self._number is not None and self._was_published(self._number):
                    raise _Published  # noqa: TRY301 (it rolls the block back)
                self._number = number
                self._refuse_full(number)
                self._insert(connection, number)
        except _Published:
            assert self._number is not None  # noqa: S101 (for the type checker)
            return self._number
        return number

    def _next_number(self, connection: BaseDatabaseWrapper) -> int:
        number = self._take_number(connection)
        if number is None:
            make(self._using, self._broadcast)
            number = self._take_number(connection)
        if number is None:
            raise Broadcast.DoesNotExist(f"channel {self._broadcast.name!r} was deleted just now")
        return number

    def _take_number(self, connection: BaseDatabaseWrapper) -> int | None:
        speaks, quote = dialect.of(connection), connection.ops.quote_name
        table, last, name = quote(Broadcast._meta.db_table), quote("last"), quote("name")
        last_but_one = f"{last} + {len(self._payloads) - 1}"
        sql = (
            f"UPDATE {table} SET {last} = {speaks.next_fence.format(fence=last_but_one)} WHERE {name} = %s"  # noqa: S608
            f"{speaks.returning.format(fence=last)}"
        )
        return dialect.run(connection, sql, [self._broadcast.name], speaks.fence_after_update)

    def _was_published(self, number: int) -> bool:
        messages = BroadcastMessage.objects.using(self._using)
        wanted = {"channel_id": self._broadcast.name, "number": number, "publisher": self._publisher}
        return bool(messages.filter(**wanted).exists())

    def _insert(self, connection: BaseDatabaseWrapper, number: int) -> None:
        quote, meta = connection.ops.quote_name, BroadcastMessage._meta
        columns = ", ".join(map(quote, ("channel_id", "number", "payload", "publisher", "published_at")))
        row, first = f"(%s, %s, %s, %s, {dialect.of(connection).indexed_now})", number - len(self._payloads) + 1
        for some in batches(self._payloads, len, BATCH):
            sql = f"INSERT INTO {quote(meta.db_table)} ({columns}) VALUES {', '.join([row] * len(some))}"  # noqa: S608
            given: list[object] = []
            for place, payload in enumerate(some, first):
                given += [self._broadcast.name, place, payload, self._publisher]
            dialect.run(connection, sql, given, dialect.row_count)
            first += len(some)

    def _refuse_full(self, number: int) -> None:
        if self._most is None:
            return
        # The channel is locked: no message is added between this look and the commit.
        durable = Subscription.objects.using(self._using).durable().filter(channel_id=self._broadcast.name)
        least = durable.aggregate(least=Min("cursor"))["least"]
        if least is None or number - least <= self._most:
            return
        behind = durable.filter(cursor__lt=number - self._most).order_by("cursor", "name")
        last = behind.values_list("name", "cursor")[:3]
        count = len(self._payloads)
        who = ", ".join(f"{name!r} has {number - count - cursor} to read" for name, cursor in last)
        more = f"; {count} more are too many" if count > 1 else ""
        raise ChannelFull(f"channel {self._broadcast.name!r} is full: most={self._most}, {who}{more}")


def make(using: str, broadcast: Broadcast) -> None:
    """Add the channel's row if there is none."""
    rows = Broadcast.objects.using(using)
    if rows.filter(pk=broadcast.name).exists():
        return
    with contextlib.suppress(IntegrityError), transaction.atomic(using=using):  # added meanwhile
        rows.create(name=broadcast.name, kept=broadcast.kept, kept_count=broadcast.kept_count)

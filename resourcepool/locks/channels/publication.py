"""Publishing: two statements in one transaction, the first of which locks the channel until the commit.

So numbers become visible in order and without gaps: a reader that sees number 8 can see number 7. Auto-increment
numbers are assigned before the commit and become visible in any order.
"""

from collections.abc import Iterable, Mapping, Sequence, Sized
from itertools import islice

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Min

from resourcepool import options
from resourcepool.db import dialect
from resourcepool.db.rows import batches, ensure_row
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption, ChannelFull
from resourcepool.leases.terms import default_holder
from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow, Subscription
from resourcepool.translation import gettext_noop as _

BATCH = 100  # messages in one statement
MAX_MESSAGES_AT_ONCE = 1_000
MAX_JSON_AT_ONCE = 4 * 1024 * 1024  # bytes


class Publication:
    """Messages to publish together; ``send`` may be repeated.

    Args:
        channel_row: the row to add if there is no channel of this name.
        payloads: JSON texts, at least one.
        most: maximum number of unread messages of a durable subscription; None: no limit.
    """

    def __init__(self, using: str, channel_row: ChannelRow, payloads: Sequence[str], most: int | None) -> None:
        self._using, self._channel_row, self._payloads, self._most = using, channel_row, payloads, most
        self._publisher = default_holder()  # unique to this publication
        self._number: int | None = None

    def send(self) -> int:
        """Publish in the caller's transaction if one is open; return the last number. Raises ChannelFull."""
        connection = connections[self._using]
        with transaction.atomic(using=self._using):
            number = self._next_number(connection)
            if self._number is not None and self._was_published(self._number):  # but the reply was lost
                transaction.set_rollback(True, using=self._using)  # gives the new number back
                return self._number
            self._number = number
            self._refuse_full(number)
            self._insert(connection, number)
        return number

    def _next_number(self, connection: BaseDatabaseWrapper) -> int:
        number = self._take_number(connection)
        if number is None:
            ensure_channel(self._using, self._channel_row)
            number = self._take_number(connection)
        if number is None:
            raise ChannelRow.DoesNotExist(f"channel {self._channel_row.name!r} was just deleted")
        return number

    def _take_number(self, connection: BaseDatabaseWrapper) -> int | None:
        db_dialect, quote = dialect.of(connection), connection.ops.quote_name
        table, last, name = quote(ChannelRow._meta.db_table), quote("last"), quote("name")
        last_but_one = f"{last} + {len(self._payloads) - 1}"
        sql = (
            f"UPDATE {table} SET {last} = {db_dialect.next_fence.format(fence=last_but_one)} WHERE {name} = %s"  # noqa: S608
            f"{db_dialect.returning.format(fence=last)}"
        )
        return dialect.run_for_number(connection, sql, [self._channel_row.name], db_dialect.fence_after_update)

    def _was_published(self, number: int) -> bool:
        messages = MessageRow.objects.using(self._using)
        fields = {"channel_id": self._channel_row.name, "number": number, "publisher": self._publisher}
        return bool(messages.filter(**fields).exists())

    def _insert(self, connection: BaseDatabaseWrapper, number: int) -> None:
        quote, meta = connection.ops.quote_name, MessageRow._meta
        columns = ", ".join(map(quote, ("channel_id", "number", "payload", "publisher", "published_at")))
        row, first = f"(%s, %s, %s, %s, {dialect.of(connection).indexed_now})", number - len(self._payloads) + 1
        for batch in batches(self._payloads, len, BATCH):
            sql = f"INSERT INTO {quote(meta.db_table)} ({columns}) VALUES {', '.join([row] * len(batch))}"  # noqa: S608
            params: list[object] = []
            for message_number, payload in enumerate(batch, first):
                params += [self._channel_row.name, message_number, payload, self._publisher]
            dialect.run(connection, sql, params, dialect.row_count)
            first += len(batch)

    def _refuse_full(self, number: int) -> None:
        if self._most is None:
            return
        # The channel is locked: no message is added between this query and the commit.
        durable = Subscription.objects.using(self._using).durable().filter(channel_id=self._channel_row.name)
        least = durable.aggregate(least=Min("cursor"))["least"]
        if least is None or number - least <= self._most:
            return
        behind = durable.filter(cursor__lt=number - self._most).order_by("cursor", "name")
        furthest = behind.values_list("name", "cursor")[:3]
        count = len(self._payloads)
        unread = ", ".join(f"{name!r} has {number - count - cursor} unread" for name, cursor in furthest)
        more = f"; cannot add {count}" if count > 1 else ""
        raise ChannelFull(f"channel {self._channel_row.name!r} is full: most={self._most}, {unread}{more}")


def ensure_channel(using: str, channel_row: ChannelRow) -> None:
    """Add the channel's row if it is missing."""
    ensure_row(ChannelRow, using, channel_row.name, kept=channel_row.kept, kept_count=channel_row.kept_count)


def checked_payloads(value: object, most: int) -> list[str]:
    """Return each as JSON, at most ``most`` (1,000), 4 MiB in total; raises BadOption, which names the wrong one."""
    most = min(most, MAX_MESSAGES_AT_ONCE)
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | bytearray | Mapping):
        raise BadOption("payloads", value, Sentence(_("a list of payloads")))
    listed = list(islice(value, most + 1))
    if len(listed) > most:
        count = f"{len(value)} messages" if isinstance(value, Sized) else f"more than {most} messages"
        raise BadOption("payloads", count, Sentence(_("at most %(count)s messages at once"), count=most))
    texts = [options.json_text(f"payloads[{index}]", item) for index, item in enumerate(listed)]
    size = sum(len(text.encode()) for text in texts)
    if size > MAX_JSON_AT_ONCE:
        allowed = Sentence(_("at most %(count)s bytes of JSON"), count=MAX_JSON_AT_ONCE)
        raise BadOption("payloads", f"{size} bytes", allowed)
    return texts

"""``Channel``: publishes messages to all its subscribers."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from itertools import islice
from typing import Any

from django.db import connections, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Min

from resourcepool import options
from resourcepool.db import dialect
from resourcepool.db.retry import retrying
from resourcepool.db.rows import batches
from resourcepool.db.sync_async import ASYNC, for_asyncio, run_sync
from resourcepool.db.timeouts import statement_timeout
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption, ChannelFull
from resourcepool.leases.terms import MIN_TTL, default_holder
from resourcepool.locks.channels.models import (
    KEEP_MESSAGES,
    KEEP_SECONDS,
    MAX_KEPT_MESSAGES,
    Channel as ChannelRow,
    Message as MessageRow,
    Subscription,
)
from resourcepool.locks.channels.poller import pollers
from resourcepool.locks.channels.subscriber import Subscriber
from resourcepool.locks.channels.subscription import From, SubscriptionSource, checked_start
from resourcepool.locks.models import MAX_NAME
from resourcepool.options import Seconds
from resourcepool.translation import gettext_noop as _

TTL = 15.0  # seconds
BATCH = 100  # messages in one statement
MAX_MESSAGES_AT_ONCE = 1_000
MAX_JSON_AT_ONCE = 4 * 1024 * 1024  # bytes


class Channel:
    """A channel; its messages reach all subscribers, in the same order.

        Channel("config").publish({"level": 3})

        with Channel("config").subscribe("search-indexer", from_="start") as messages:
            for message in messages:
                ...

    Messages become visible in the order of their numbers (1, 2, 3, .., no gaps). A subscriber gets each message
    published after it began, at least once. A named (durable) subscription continues where it stopped, even after a
    crash and on another host.

    Not promised: exactly-once delivery; an order between channels; that a message is kept until all subscribers have
    read it. A subscriber learns which messages it missed.
    """

    def __init__(
        self, name: str, *, most: int | None = None, kept: Seconds | None = None, kept_count: int | None = None
    ) -> None:
        """The first message or subscriber creates the channel. Raises BadOption.

        Args:
            name: one line of 1 to 200 characters; case matters.
            most: ``publish`` raises ChannelFull while a durable subscription has more unread messages; None: no limit.
            kept: seconds or timedelta for which a new channel keeps messages; None: 7 days.
            kept_count: number of messages that a new channel keeps; None: 100,000. Operators can change both later.
        """
        self.name = options.name("name", name, most=MAX_NAME)
        self._most = None if most is None else options.whole("most", most, least=1, most=MAX_KEPT_MESSAGES)
        seconds = (
            KEEP_SECONDS if kept is None else options.seconds("kept", kept, least=1.0, most=3_650 * options.DAY)
        )
        count = KEEP_MESSAGES if kept_count is None else kept_count
        count = options.whole("kept_count", count, least=1, most=MAX_KEPT_MESSAGES)
        self._channel_row = ChannelRow(name=self.name, kept=seconds, kept_count=count)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    @property
    def using(self) -> str:
        """The database alias of its rows."""
        return router.db_for_write(ChannelRow)

    def publish(self, payload: Any) -> int:
        """Publish a message, in the caller's transaction if one is open; return its number.

        The channel is locked until the commit, so keep the transaction short.

        Args:
            payload: any JSON value, up to 64 KiB.

        Raises:
            BadOption: the payload is invalid.
            ChannelFull: a durable subscription has more than ``most`` unread messages.
            DatabaseUnavailable: it is unknown whether the message was published.
        """
        return self._publish([options.json_text("payload", payload)])

    apublish = for_asyncio(publish)

    def publish_many(self, payloads: Iterable[Any]) -> range:
        """Publish several messages, all or none, with consecutive numbers; return the numbers. See ``publish``.

        Args:
            payloads: up to 1,000, 4 MiB in total, at most ``most`` of the channel.
        """
        texts = checked_payloads(payloads, self._most or MAX_MESSAGES_AT_ONCE)
        if not texts:
            return range(0)
        last = self._publish(texts)
        return range(last - len(texts) + 1, last + 1)

    apublish_many = for_asyncio(publish_many)

    def subscribe(
        self,
        name: str | None = None,
        *,
        from_: From = "now",
        timeout: Seconds | None = None,
        stop: Callable[[], bool] = lambda: False,
        ttl: Seconds = TTL,
    ) -> Subscriber:
        """Return an iterator of the messages.

        Args:
            name: the name of a durable subscription, which continues where it stopped. One process at a time reads it;
                others wait until that process closes it or crashes. None: not durable, for this process only.
            from_: where a new subscription begins: "now" (the next message), "start" (the oldest kept message), a
                message's number, or a datetime.
            timeout: seconds or timedelta without a message after which the iteration ends; None or -1: no limit.
            stop: called at least every half second; True ends the iteration.
            ttl: seconds or timedelta until others may read the subscription after this process crashed.

        Raises:
            AcquireTimeout: another process kept reading the subscription until the timeout or ``stop``.
            BadOption: an argument is invalid.
            ClaimInTransaction: a transaction is open.
            DatabaseUnavailable: it could not begin.
        """
        return run_sync(Subscriber(self._source(name, from_, ttl), timeout, stop).begin)

    async def asubscribe(
        self,
        name: str | None = None,
        *,
        from_: From = "now",
        timeout: Seconds | None = None,
        stop: Callable[[], bool] = lambda: False,
        ttl: Seconds = TTL,
    ) -> Subscriber:
        """``subscribe`` for asyncio, for ``async for``; waiting occupies no thread. ``stop`` is a plain function."""
        return await Subscriber(self._source(name, from_, ttl), timeout, stop).begin(ASYNC)

    def _publish(self, payloads: Sequence[str]) -> int:
        using = self.using
        publication = Publication(using, self._channel_row, payloads, self._most)
        with statement_timeout():
            number = retrying(connections[using], publication.send)
        pollers.notify_after_commit(using, self.name)
        return number

    def _source(self, name: str | None, start: From, ttl: Seconds) -> SubscriptionSource:
        name = None if name is None else options.name("name", name, most=MAX_NAME)
        seconds = options.seconds("ttl", ttl, least=MIN_TTL)
        return SubscriptionSource(self.using, self._channel_row, name, checked_start(start), seconds)


class Publication:
    """Messages to publish together; ``send`` may be repeated.

    Two statements in one transaction, the first of which locks the channel until the commit. So numbers become visible
    in order and without gaps: a reader that sees number 8 can see number 7. Auto-increment numbers are assigned before
    the commit and become visible in any order.

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
            self._channel_row.ensure(self._using)
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

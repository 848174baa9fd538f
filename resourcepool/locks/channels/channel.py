"""``Channel``: publishes messages to all its subscribers."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.db import connections, router

from resourcepool import options
from resourcepool.db.retry import retrying
from resourcepool.db.sync_async import for_asyncio
from resourcepool.db.timeouts import statement_timeout
from resourcepool.leases.terms import MIN_TTL
from resourcepool.locks.channels.models import (
    KEEP_MESSAGES,
    KEEP_SECONDS,
    MAX_KEPT_MESSAGES,
    Channel as ChannelRow,
)
from resourcepool.locks.channels.poller import pollers
from resourcepool.locks.channels.publication import MAX_MESSAGES_AT_ONCE, Publication, checked_payloads
from resourcepool.locks.channels.subscriber import Subscriber
from resourcepool.locks.channels.subscription import From, SubscriptionSource, checked_start
from resourcepool.locks.models import MAX_NAME
from resourcepool.options import Seconds

TTL = 15.0  # seconds


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
        self,
        name: str,
        *,
        most: int | None = None,
        kept: Seconds | None = None,
        kept_count: int | None = None,
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
        subscriber = Subscriber(self._source(name, from_, ttl), timeout, stop)
        subscriber.start()
        return subscriber

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
        subscriber = Subscriber(self._source(name, from_, ttl), timeout, stop)
        await subscriber.astart()
        return subscriber

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

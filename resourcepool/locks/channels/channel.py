"""A channel: its messages reach all its subscribers, in one order."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.db import connections, router

from resourcepool import options
from resourcepool.database.retry import retrying
from resourcepool.database.timeouts import statement_timeout
from resourcepool.leases.terms import MIN_TTL
from resourcepool.locks.base import wait_seconds
from resourcepool.locks.channels import validation
from resourcepool.locks.channels.models import KEEP_MESSAGES, KEEP_SECONDS, MAX_KEPT_MESSAGES
from resourcepool.locks.channels.models import Channel as ChannelRow
from resourcepool.locks.channels.poller import pollers
from resourcepool.locks.channels.publication import Publication
from resourcepool.locks.channels.subscriber import Subscriber
from resourcepool.locks.channels.subscription import SubscriptionSource
from resourcepool.locks.models import MAX_NAME
from resourcepool.threads.async_threads import for_asyncio

TTL = 15.0  # seconds


class Channel:
    """Messages for all subscribers, in one order for all.

        Channel("config").publish({"level": 3})

        with Channel("config").subscribe("search-indexer", from_="start") as messages:
            for message in messages:
                ...

    Messages become visible in the order of their numbers: 1, 2, 3, .., without gaps. A subscriber gets each message
    published after it has begun, at least once. One with a name goes on where it was, even after a crash and on
    another host.

    Not promised: that a message comes only once; an order between channels; that messages wait for a subscriber for
    longer than the channel keeps them, but it learns which it missed.
    """

    def __init__(
        self,
        name: str,
        *,
        most: int | None = None,
        kept: object = None,
        kept_count: int | None = None,
    ) -> None:
        """The first message, or the first subscriber, makes the channel. Raises BadOption.

        Args:
            name: one line of 1 to 200 characters; case matters.
            most: ``publish`` refuses while a durable subscription has more messages than that to read; None: never.
            kept: seconds or timedelta for which a new channel keeps messages; None: 7 days.
            kept_count: how many messages a new channel keeps; None: 100,000. Later operators change both.
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
        """The database of its rows."""
        return router.db_for_write(ChannelRow)

    def publish(self, payload: Any) -> int:
        """Publish a message, with the caller's transaction if one is open; return its number.

        Until the commit nobody else can publish in this channel: keep such a transaction short.

        Args:
            payload: anything that JSON can say, up to 64 KiB.

        Raises:
            BadOption: the payload is not allowed.
            ChannelFull: a durable subscription has more than ``most`` messages to read.
            DatabaseUnavailable: it is unknown whether it was published.
        """
        return self._publish([validation.payload(payload)])

    apublish = for_asyncio(publish)

    def publish_many(self, payloads: Iterable[Any]) -> range:
        """Publish several messages without others in between, all or none; return their numbers. See ``publish``.

        Args:
            payloads: up to 1,000, of 4 MiB together, and no more than the ``most`` of the channel.
        """
        texts = validation.payloads(payloads, self._most or validation.MAX_MESSAGES_AT_ONCE)
        if not texts:
            return range(0)
        last = self._publish(texts)
        return range(last - len(texts) + 1, last + 1)

    apublish_many = for_asyncio(publish_many)

    def subscribe(
        self,
        name: str | None = None,
        *,
        from_: validation.From = "now",
        timeout: object = None,
        stop: Callable[[], bool] = lambda: False,
        ttl: object = TTL,
    ) -> Subscriber:
        """Return an iterator of the messages.

        Args:
            name: of a durable subscription, which goes on where it was. One process at a time reads under it; others
                wait until that closes it or dies. None: not durable, for this process alone.
            from_: where a new subscription begins: "now" (with what is published from now on), "start" (with the
                oldest message that is kept), a message's number, or a datetime.
            timeout: seconds or timedelta without a message after which the iteration ends; None or -1: never.
            stop: asked at least every half second; True ends the iteration.
            ttl: seconds or timedelta after the death of this process until others may read under the name.

        Raises:
            AcquireTimeout: another process read under this name all that time, or until ``stop``.
            BadOption: a value is not allowed.
            ClaimInTransaction: a transaction is open.
            DatabaseUnavailable: it did not begin.
        """
        subscriber = self._subscriber(name, from_, timeout, stop, ttl)
        subscriber.start()
        return subscriber

    async def asubscribe(
        self,
        name: str | None = None,
        *,
        from_: validation.From = "now",
        timeout: object = None,
        stop: Callable[[], bool] = lambda: False,
        ttl: object = TTL,
    ) -> Subscriber:
        """``subscribe`` for asyncio, for ``async for``; waiting occupies no thread. ``stop`` is a plain function."""
        subscriber = self._subscriber(name, from_, timeout, stop, ttl)
        await subscriber.astart()
        return subscriber

    def _publish(self, payloads: Sequence[str]) -> int:
        using = self.using
        publication = Publication(using, self._channel_row, payloads, self._most)
        with statement_timeout():
            number = retrying(connections[using], publication.send)
        pollers.notify_after_commit(using, self.name)
        return number

    def _subscriber(
        self, name: str | None, from_: object, timeout: object, stop: Callable[[], bool], ttl: object
    ) -> Subscriber:
        called = None if name is None else options.name("name", name, most=MAX_NAME)
        wait = wait_seconds("timeout", timeout)
        options.plain_function("stop", stop, "a plain function, which tells whether to end")
        lasts = options.seconds("ttl", ttl, least=MIN_TTL)
        return Subscriber(
            SubscriptionSource(self.using, self._channel_row, called, validation.start(from_), lasts),
            wait,
            stop,
        )

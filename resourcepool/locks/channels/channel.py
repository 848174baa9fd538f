"""A channel: what is published in it reaches all who subscribe to it, in one order."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.db import connections, router

from resourcepool import options
from resourcepool.async_threads import for_asyncio
from resourcepool.database.answers import answer_timeout
from resourcepool.database.retry import retrying
from resourcepool.leases.terms import MIN_TTL
from resourcepool.locks.channels import checking
from resourcepool.locks.channels.looking import looks
from resourcepool.locks.channels.models import KEPT, KEPT_COUNT, MOST_KEPT, Broadcast
from resourcepool.locks.channels.publishing import Publication
from resourcepool.locks.channels.seat import Seat
from resourcepool.locks.channels.subscriber import Subscriber
from resourcepool.locks.models import MAX_NAME
from resourcepool.locks.rows import wait_of

TTL = 15.0  # seconds


class Channel:
    """Messages for everybody who listens, in one order for all (document 004, R4.1).

        Channel("config").publish({"level": 3})

        with Channel("config").subscribe("search-indexer", from_="start") as messages:
            for message in messages:
                ...

    Messages become visible in the order of their numbers: 1, 2, 3, .., without gaps. A subscriber gets each message
    that is published after it has begun, at least once while it lives; one with a name goes on where it was, after
    a crash and on another host, too.

    Not promised: that a message comes only once, that messages of different channels come in one order, and that
    messages are kept for a subscriber that is behind for longer than the channel keeps them; it learns what it missed.
    """

    def __init__(
        self,
        name: str,
        *,
        most: int | None = None,
        kept: object = None,
        kept_count: int | None = None,
    ) -> None:
        """Describe it; the first message, or the first subscriber, makes it.

        Args:
            name: a line of 1 to 200 characters; upper and lower case are different.
            most: ``publish`` refuses while a durable subscription has more messages than that to read; None: never.
            kept: seconds or timedelta for which messages are kept, where this makes the channel; 7 days if not given.
            kept_count: how many messages are kept, where this makes the channel; 100,000 if not given. Of a channel
                that is there already operators change both.

        Raises:
            BadOption: a value is not allowed.
        """
        self.name = options.name("name", name, most=MAX_NAME)
        self._most = None if most is None else options.whole("most", most, least=1, most=MOST_KEPT)
        seconds = KEPT if kept is None else options.seconds("kept", kept, least=1.0, most=3_650 * options.DAY)
        count = KEPT_COUNT if kept_count is None else kept_count
        count = options.whole("kept_count", count, least=1, most=MOST_KEPT)
        self._broadcast = Broadcast(name=self.name, kept=seconds, kept_count=count)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    @property
    def using(self) -> str:
        """The database in which it is."""
        return router.db_for_write(Broadcast)

    def publish(self, payload: Any) -> int:
        """Publish a message, inside a transaction of the caller when that commits; returns its number.

        Until that commit nobody else can publish in this channel: keep such a transaction short.

        Args:
            payload: anything that JSON can say, up to 64 KiB.

        Raises:
            BadOption: the payload is not allowed.
            ChannelFull: a durable subscription has more than ``most`` messages to read.
            DatabaseUnavailable: it is unknown whether it was published.
        """
        return self._publish([checking.payload(payload)])

    apublish = for_asyncio(publish)

    def publish_many(self, payloads: Iterable[Any]) -> range:
        """Publish several messages, one after the other and nobody else's in between, all or none; see ``publish``.

        Args:
            payloads: up to 1,000, of 4 MiB together, and no more than the ``most`` of the channel.

        Returns:
            Their numbers.

        Raises:
            as ``publish``.
        """
        texts = checking.payloads(payloads, self._most or checking.MOST_AT_ONCE)
        if not texts:
            return range(0)
        last = self._publish(texts)
        return range(last - len(texts) + 1, last + 1)

    apublish_many = for_asyncio(publish_many)

    def subscribe(
        self,
        name: str | None = None,
        *,
        from_: checking.From = "now",
        timeout: object = None,
        stop: Callable[[], bool] = lambda: False,
        ttl: object = TTL,
    ) -> Subscriber:
        """Return an iterator of the messages, from this moment on.

        Args:
            name: of a durable subscription, which goes on where it was; one process at a time reads under it, and
                others wait until that closes it or has died. None: not durable, and for this process alone.
            from_: where to begin, unless a durable subscription of this name has begun before: "now" (what is published
                from now on), "start" (the oldest that is kept), a message's number, or a datetime.
            timeout: seconds or timedelta without a message, after which the iteration ends; None or -1: as long as it
                takes.
            stop: asked now and then, within half a second; True ends the iteration.
            ttl: seconds or timedelta after which others may read under the name when this process has died.

        Raises:
            AcquireTimeout: another process reads under this name all that time, or until ``stop``.
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
        from_: checking.From = "now",
        timeout: object = None,
        stop: Callable[[], bool] = lambda: False,
        ttl: object = TTL,
    ) -> Subscriber:
        """``subscribe`` for asyncio, for ``async for``; waiting occupies no thread. ``stop`` is a plain function."""
        subscriber = self._subscriber(name, from_, timeout, stop, ttl)
        await subscriber.astart()
        return subscriber

    def _publish(self, payloads: Sequence[str]) -> int:
        """Publish these; return the last number."""
        using = self.using
        publication = Publication(using, self._broadcast, payloads, self._most)
        with answer_timeout():
            number = retrying(connections[using], publication.send)
        looks.tell_after_commit(using, self.name)
        return number

    def _subscriber(
        self, name: str | None, from_: object, timeout: object, stop: Callable[[], bool], ttl: object
    ) -> Subscriber:
        called = None if name is None else options.name("name", name, most=MAX_NAME)
        wait = wait_of("timeout", timeout)
        options.plain_function("stop", stop, "a plain function, which tells whether to end")
        lasts = options.seconds("ttl", ttl, least=MIN_TTL)
        return Subscriber(Seat(self.using, self._broadcast, called, checking.start(from_), lasts), wait, stop)

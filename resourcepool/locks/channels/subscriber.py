"""``Subscriber``: reads the messages of a channel and waits for new ones."""

import contextlib
import logging
import math
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from django.db import connections

from resourcepool import options
from resourcepool.clock import monotonic
from resourcepool.db import dialect
from resourcepool.db.sync_async import ASYNC, Mode, for_asyncio, run_sync
from resourcepool.db.timeouts import statement_timeout
from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable, LeaseFromAnotherProcess, LeaseLost
from resourcepool.locks.channels.poller import pollers
from resourcepool.locks.channels.position import Message, Position
from resourcepool.locks.channels.subscription import SubscriptionSource
from resourcepool.locks.lockable import wait_seconds
from resourcepool.options import Seconds
from resourcepool.waiting.acquire import acquire

POLL = 0.5  # seconds
SESSION_KEPT = 1.0  # seconds of waiting after which the database session is closed
OUTAGE = (0.2, 5.0)  # seconds between attempts while the database is unavailable: first and longest pause

logger = logging.getLogger(__name__)


class Subscriber:
    """An iterator of the messages of a channel, for one thread or task at a time. See ``Channel.subscribe``.

    A message is done when the next one is requested, or by ``message.done()``. After a crash, the next reader of a
    durable subscription gets messages that were not done again: at-least-once delivery. A durable cursor is stored
    before waiting, after every 100 messages, every second, and by ``message.done()``; later messages may come again.

    Not promised: that a process that was paused for longer than the ttl stops handling a message while another process
    handles it; ``message.done()`` in the handler's transaction prevents that.
    """

    def __init__(self, source: SubscriptionSource, timeout: Seconds | None, stop: Callable[[], bool]) -> None:
        options.plain_function("stop", stop, "a plain function that returns whether to end")
        self._source, self._timeout, self._stop = source, wait_seconds("timeout", timeout), stop
        self._position = Position(source)
        self._pause, self._is_closed = 0.0, False

    def __repr__(self) -> str:
        name = f" as {self._source.display_name!r}" if self._source.is_durable else ""
        return f"<{type(self).__name__} of {self._source.channel_row.name!r}{name}>"

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} cannot be pickled or copied: subscribe in the other process")

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        if (message := self.get()) is None:
            raise StopIteration
        return message

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        if (message := await self.aget()) is None:
            raise StopAsyncIteration
        return message

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()

    @property
    def cursor(self) -> int:
        """The number of the last message that is done."""
        return self._position.cursor

    def get(self, timeout: Seconds | None = None) -> Message | None:
        """Return the next message; None: timeout, ``stop`` returned True, or the subscriber is closed.

        Args:
            timeout: seconds or timedelta; None: the subscription's timeout; -1: no limit. Database outages count as
                time without a message.

        Raises:
            MessagesMissed: messages were removed before they were read; the next call continues after them.
            LeaseLost: an operator removed the subscription.
            ClaimInTransaction: a transaction is open.
            LeaseFromAnotherProcess: this is a fork of the subscribing process; subscribe after the fork.
        """
        return self._position.deliver() if run_sync(self._is_ready, self._next(timeout)) else None

    async def aget(self, timeout: Seconds | None = None) -> Message | None:
        """``get`` for asyncio; waiting occupies no thread."""
        return self._position.deliver() if await self._is_ready(ASYNC, self._next(timeout)) else None

    def close(self) -> None:
        """Store the cursor and release the subscription. The message in hand is not marked as done."""
        self._is_closed = True
        lease = self._position.lease
        if lease is None:
            return
        try:
            lease.ensure_ours()
        except LeaseFromAnotherProcess:
            return  # in a fork; the subscription belongs to the parent
        lease._stop_renewing()  # first: if anything fails after this, it expires
        with contextlib.suppress(LeaseLost, DatabaseUnavailable), statement_timeout():
            if lease.is_held:
                self._position.store()
        self._position.lease = None
        with contextlib.suppress(DatabaseUnavailable), statement_timeout():
            self._source.leave(lease)

    aclose = for_asyncio(close)

    async def begin(self, mode: Mode) -> Self:
        """Wait while another process reads the subscription; return this."""
        await self._take(mode, monotonic() + self._timeout)
        return self

    def _next(self, timeout: Seconds | None) -> float:
        wait = self._timeout if timeout is None else wait_seconds("timeout", timeout)
        self._position.move_on()
        return monotonic() + wait

    async def _is_ready(self, mode: Mode, until: float) -> bool:
        """Wait until there is something to deliver; False: ``get`` returns None."""
        is_over = False
        self._position.note_loop(mode.loop)
        while not (is_over or self._is_closed or self._stop()):
            is_over = monotonic() >= until
            try:
                await self._take(mode, until)
                if self._position.is_ready or await mode.call(
                    partial(self._position.fill, asks_database=is_over)
                ):
                    return True
                self._pause = 0.0
                await self._wait(mode, until)
            except DatabaseUnavailable as error:
                await self._sleep(mode, mode.wake_event(), min(until, self._away(error)), is_away=True)
            except AcquireTimeout:
                return False
        return False

    async def _take(self, mode: Mode, until: float) -> None:
        while not self._position.is_held():
            await mode.call(self._source.ensure_row)
            request = self._source.request(math.inf if math.isinf(until) else max(0.0, until - monotonic()))
            (lease,) = await acquire(mode, self._source, request, stop=self._stop)
            try:
                row = await mode.call(self._source.begin, lease)
                if row is not None:
                    self._position.begin_at(lease, row)
            except BaseException:
                await mode.call(lease._release_quietly)
                raise
            if row is None:
                await mode.call(lease._release_quietly)

    def _away(self, error: Exception) -> float:
        """Log an outage once; return when to try again."""
        first, longest = OUTAGE
        if not self._pause:
            logger.warning("channel %r: %s; will retry", self._source.channel_row.name, error)
        self._pause = min(longest, 2 * self._pause) or first
        return monotonic() + self._pause

    async def _wait(self, mode: Mode, until: float) -> None:
        if self._has_lost():
            return
        wake_event = mode.wake_event()
        poller, news = pollers.on(self._source.using), self._position.waiting_subscriber(wake_event)
        try:
            poller.add(news)
            await self._sleep(mode, wake_event, until)
        finally:
            poller.remove(news)
            self._position.note_news(news)

    async def _sleep(self, mode: Mode, wake_event: Any, until: float, *, is_away: bool = False) -> None:
        """Sleep until woken, the lease is lost, ``stop`` returns True, or ``until``."""
        began = monotonic()
        while not (self._is_closed or self._stop()) and (left := until - monotonic()) > 0:
            # In short sleeps: Python may miss a signal that arrives just as the main thread goes to sleep.
            if await wake_event.wait_async(min(left, POLL)) or (self._has_lost() and not is_away):
                return
            if monotonic() - began > SESSION_KEPT and mode is not ASYNC:  # a waiting task has no session
                dialect.close_own_session(connections[self._source.using])

    def _has_lost(self) -> bool:
        lease = self._position.lease
        return lease is None or not lease.is_held

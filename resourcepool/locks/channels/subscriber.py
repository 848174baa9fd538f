"""Reading a channel: message after message, in order, waiting for those that are still to come."""

import contextlib
import logging
import math
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from resourcepool.async_threads import for_asyncio
from resourcepool.database.answers import answer_timeout
from resourcepool.database.clock import monotonic
from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable, LeaseFromAnotherProcess, LeaseLost
from resourcepool.locks.channels.looking import looks
from resourcepool.locks.channels.message import Message
from resourcepool.locks.channels.position import Position
from resourcepool.locks.channels.seat import Seat
from resourcepool.locks.rows import wait_of
from resourcepool.locks.ways import AWAITING, BLOCKING, Way, at_once

NAP = 0.5  # seconds
SESSION_KEPT = 1.0  # seconds of waiting after which a session that was opened for reading is closed
OUTAGE = (0.2, 5.0)  # seconds between two tries while the database is away: the first pause, and the longest

logger = logging.getLogger(__name__)


class Subscriber:
    """Reads one channel; an iterator of its messages. For one thread, or asyncio task, at a time.

    A message counts as done when the next one is asked for, or by ``message.done()``. What is not done when its process
    dies is read again under the same name, by whoever reads then: at least once. Of a durable one the cursor is stored
    before it waits, with every 100 messages, each second, and by ``message.done()``: so many may come again.

    Not promised: that a process which was stopped for longer than the ttl has no effect with a message that it has in
    hand, while another one reads it; ``message.done()`` in the transaction of the effect excludes that.
    """

    def __init__(self, seat: Seat, timeout: float, stop: Callable[[], bool]) -> None:
        """See ``Channel.subscribe``."""
        self._seat, self._timeout, self._stop = seat, timeout, stop
        self._position = Position(seat)
        self._pause, self._is_closed = 0.0, False

    def __repr__(self) -> str:
        name = f" as {self._seat.shown!r}" if self._seat.is_durable else ""
        return f"<{type(self).__name__} of {self._seat.broadcast.name!r}{name}>"

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        try:
            if (message := self.get()) is not None:
                return message
        except BaseException as error:
            self._position.take_back(error)
            raise
        raise StopIteration

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
        return self._position.place.cursor

    def get(self, timeout: object = None) -> Message | None:
        """Return the next message; None when there is none for ``timeout``, after ``stop``, or once it is closed.

        Args:
            timeout: seconds or timedelta; None: that of the subscription; -1: as long as it takes. An outage of the
                database counts as time in which there is no message; reading goes on where it was.

        Raises:
            MessagesMissed: messages were removed before they were read; the next call goes on after them.
            LeaseLost: an operator has removed the subscription.
            ClaimInTransaction: a transaction is open.
            LeaseFromAnotherProcess: this is a fork of the process that subscribed; subscribe after the fork.
        """
        until = self._next(timeout)
        try:
            return self._position.deliver() if at_once(self._is_ready, BLOCKING, until) else None
        except BaseException as error:
            self._position.take_back(error)
            raise

    async def aget(self, timeout: object = None) -> Message | None:
        """``get`` for asyncio; waiting occupies no thread."""
        return self._position.deliver() if await self._is_ready(AWAITING, self._next(timeout)) else None

    def close(self) -> None:
        """Store how far it is, and let the next one read under this name. A message in hand is not done by that."""
        self._is_closed = True
        lease = self._position.lease
        if lease is None:
            return
        try:
            lease.ensure_ours()
        except LeaseFromAnotherProcess:
            return  # a fork ends its copy of a ``with`` block: the subscription is its parent's
        lease.let_go()  # first: whatever fails then, it is not renewed, and the name comes free
        with contextlib.suppress(LeaseLost, DatabaseUnavailable), answer_timeout():
            if lease.is_held:
                self._position.store()
        self._position.lease = None
        with contextlib.suppress(DatabaseUnavailable), answer_timeout():
            self._seat.leave(lease)

    aclose = for_asyncio(close)

    def start(self) -> None:
        """Take the place in which it begins; waits while another process reads under this name."""
        at_once(self._take, BLOCKING, monotonic() + self._timeout)

    async def astart(self) -> None:
        """``start`` for asyncio."""
        await self._take(AWAITING, monotonic() + self._timeout)

    # The rest is private

    def _next(self, timeout: object) -> float:
        wait = self._timeout if timeout is None else wait_of("timeout", timeout)
        self._position.move_on()
        return monotonic() + wait

    async def _is_ready(self, way: Way, until: float) -> bool:
        """Wait until there is something to deliver; False: there is nothing, see ``get``."""
        is_over = False
        while not (is_over or self._is_closed or self._stop()):
            is_over = monotonic() >= until
            try:
                await self._take(way, until)
                if self._position.is_ready or await way.call(partial(self._position.fill, looks=is_over)):
                    return True
                self._pause = 0.0
                await self._wait(way, until)
            except DatabaseUnavailable as error:
                await self._sleep(way, way.bell(), min(until, self._away(error)), is_away=True)
            except AcquireTimeout:
                return False
        return False

    async def _take(self, way: Way, until: float) -> None:
        while not self._position.is_held():
            await way.call(self._seat.find)
            request = self._seat.request(math.inf if math.isinf(until) else max(0.0, until - monotonic()))
            (lease,) = await way.acquire(self._seat, request, stop=self._stop)
            try:
                row = await way.call(self._seat.begin, lease)
                if row is not None:
                    self._position.taken(lease, row)
            except BaseException:
                await way.call(lease.abandon)
                raise
            if row is None:
                await way.call(lease.abandon)

    def _away(self, error: Exception) -> float:
        """Take note that the database is away; return when to try again."""
        first, longest = OUTAGE
        if not self._pause:
            logger.warning("channel %r: %s; reading goes on later", self._seat.broadcast.name, error)
        self._pause = min(longest, 2 * self._pause) or first
        return monotonic() + self._pause

    async def _wait(self, way: Way, until: float) -> None:
        """Wait for news, or until the time is up, or it is to stop."""
        if self._has_lost():
            return
        bell = way.bell()
        look, news = looks.on(self._seat.using), self._position.waiting(bell.ring)
        try:
            look.join(news)
            await self._sleep(way, bell, until)
        finally:
            look.leave(news)
            self._position.heard(news)

    async def _sleep(self, way: Way, bell: Any, until: float, *, is_away: bool = False) -> None:
        """Sleep until it is rung, the lease is lost, it is to stop, or ``until`` has come."""
        began = monotonic()
        while not (self._is_closed or self._stop()) and (left := until - monotonic()) > 0:
            # In naps, because Python may miss a signal that arrives just as the main thread goes to sleep.
            if await bell.heard(min(left, NAP)) or (self._has_lost() and not is_away):
                return
            if monotonic() - began > SESSION_KEPT:
                way.end_session(self._seat.using)

    def _has_lost(self) -> bool:
        lease = self._position.lease
        return lease is None or not lease.is_held

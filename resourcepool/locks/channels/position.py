"""A message, and the reading position of a subscriber: messages that are read, done, and stored as done."""

import json
import logging
import weakref
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.db import connections

from resourcepool.clock import monotonic
from resourcepool.db.dialect import for_project, from_columns
from resourcepool.db.open_transaction import callers_blocks
from resourcepool.db.retry import retrying
from resourcepool.db.sync_async import for_asyncio
from resourcepool.db.timeouts import statement_timeout
from resourcepool.exceptions import ClaimInTransaction, LeaseLost, LeaseReleased, MessagesMissed
from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow
from resourcepool.locks.channels.poller import WaitingSubscriber
from resourcepool.locks.channels.subscription import SubscriptionLease, SubscriptionSource

BATCH = 100  # messages in one query
STORED_EVERY = 1.0  # seconds between two stores of the cursor while messages arrive without a pause
COLUMNS = ("number", "payload", "published_at", "publisher", "channel__made")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        number: its number in the channel: 1, 2, 3, ..
        payload: the published value.
        published_at: time of publication, by the database's clock.
        publisher: host/pid/thread/number, for people.
    """

    number: int
    payload: Any
    published_at: Any
    publisher: str
    # Weak: a message in a traceback must not keep the subscription leased.
    _note_done: "weakref.WeakMethod[Callable[[int, int], None]]" = field(repr=False, compare=False)
    _turn: int = field(repr=False, compare=False)  # see ``Position``

    def done(self) -> None:
        """Move the cursor to this message; of a durable subscription in the caller's transaction, if one is open.

        So the handler's writes to the same database and the cursor are committed together or not at all.

        Raises:
            LeaseLost: another process has read the subscription since this message was delivered, the channel was
                removed, or the subscriber was garbage-collected. Nothing was changed.
            LeaseReleased: it is done already, by this transaction or by an earlier one whose commit succeeded without
                a reply. Continue with the next message.
            DatabaseUnavailable: it is unknown whether the cursor was stored.
        """
        if (note_done := self._note_done()) is None:
            raise LeaseLost(
                f"message {self.number} is not done: its subscriber was garbage-collected; keep a reference, use with"
            )
        note_done(self.number, self._turn)

    adone = for_asyncio(done)


class Position:
    """The position of a subscriber, which may read while it has a ``lease``.

    Attributes:
        cursor: the number of the last message that is done.
        last: the number of the newest known message; ``made``: the incarnation of the channel.
    """

    def __init__(self, source: SubscriptionSource) -> None:
        self._source = source
        self.lease: SubscriptionLease | None = None
        self.cursor, self.last, self.made = 0, 0, 0
        self._is_new = True
        self._read: deque[tuple[Any, ...]] = deque()
        self._in_hand = 0  # number of the message being handled by the caller
        self._turn = 0  # grows with each new lease or channel: others may have read in between
        self._stored, self._stored_at, self._missed = 0, 0.0, 0
        self._missing: tuple[int, int] | None = None  # first and last number to report as missed

    @property
    def is_ready(self) -> bool:
        """Whether it can deliver without storing the cursor first."""
        has_message = bool(self._read) and monotonic() - self._stored_at < STORED_EVERY
        return has_message or self._missing is not None

    def begin_at(self, lease: SubscriptionLease, row: Any) -> None:
        """Begin (again) at the row's cursor, under this lease."""
        channel = row.channel
        if self._is_new or self._source.is_durable:
            self.cursor = row.cursor
            self._missing = None  # found under an older lease; found again if still true
        elif self.made != channel.made:  # the row's cursor is not maintained
            self.cursor = 0
        self._read.clear()  # read under an older lease, or by a cancelled call
        self.last, self.made = channel.last, channel.made
        self._stored, self._missed = row.cursor, row.missed
        self.lease, self._stored_at, self._is_new = lease, monotonic(), False
        self._turn += self._source.is_durable

    def note_loop(self, loop: AbstractEventLoop | None) -> None:
        """Note the event loop of the reading task (None: a thread); once it is closed, the lease is not renewed."""
        if self.lease is not None:
            self.lease._loop = None if loop is None else weakref.ref(loop)

    def is_held(self) -> bool:
        """Whether it may still read. Raises LeaseFromAnotherProcess after a fork."""
        if self.lease is not None:
            self.lease.ensure_ours()
        if self.lease is not None and not self.lease.is_held:
            logger.warning("%s was lost; acquiring it again", self.lease)
            self.drop_lease()
        return self.lease is not None

    def drop_lease(self) -> None:
        if self.lease is not None:
            self.lease._stop_renewing()
        self.lease = None

    def move_on(self) -> None:
        """Mark the message in hand as done, when the caller asks for the next one."""
        self.cursor, self._in_hand = max(self._in_hand, self.cursor), 0

    def note_done(self, number: int, turn: int) -> None:
        """See ``Message.done``."""
        if turn != self._turn:
            raise LeaseLost(
                f"message {number} was read before the lease of {self._source.name!r} was lost or the channel removed"
            )
        is_in_hand, cursor, lease = number > self.cursor, max(number, self.cursor), self.lease
        if not self._source.is_durable or cursor == self._stored:
            self.cursor = cursor
            return
        if lease is None:
            raise LeaseLost(f"subscription {self._source.name!r} is no longer read by this process")
        lease.ensure_held()
        connection = connections[self._source.using]
        is_atomic = connection.in_atomic_block or not connection.get_autocommit()
        # In a transaction, so that its writes happen once even if the caller repeats it after a lost commit reply.
        is_once = is_atomic and is_in_hand
        with statement_timeout():
            if not (lease.store_once if is_once else lease.store)(cursor, self._missed):
                if is_once and lease.has_stored(cursor):
                    where = f"subscription {self._source.name!r} of channel {self._source.channel_row.name!r}"
                    raise LeaseReleased(
                        f"message {number} of {where} is done already: by an earlier transaction whose commit reply was"
                        " lost, or by done() in this one"
                    )
                self.drop_lease()
                raise LeaseLost(f"{lease} is lost: another process reads this subscription")
        if not is_atomic:  # a rollback would undo it
            self.cursor = self._stored = cursor

    def deliver(self) -> Message:
        """Return the next message; call ``fill`` first. Raises MessagesMissed."""
        if self._missing is not None:
            missing, self._missing = self._missing, None
            raise self._messages_missed(*missing)
        number, payload, at, publisher, _made = self._read[0]
        at = for_project(from_columns(at, connections[self._source.using]))
        message = Message(
            number, json.loads(payload), at, publisher, weakref.WeakMethod(self.note_done), self._turn
        )
        self._read.popleft()
        self._in_hand = number
        return message

    def fill(self, *, asks_database: bool = False) -> bool:
        """Read messages if needed; return whether there is something to deliver. Raises ClaimInTransaction.

        Args:
            asks_database: query the channel even if no new message is known.
        """
        if self.is_ready:
            return True
        if callers_blocks(connections[self._source.using]):
            raise ClaimInTransaction(
                "a transaction is open and may not see new messages: read outside of transaction.atomic()"
            )
        with statement_timeout():
            if not self.store():
                self.drop_lease()
                return False
            if asks_database and not self._read:
                self._read_channel()
            if not self._read and self.cursor < self.last:
                self._read_on()
        return bool(self._read) or self._missing is not None

    def store(self) -> bool:
        """Store the cursor of a durable subscription if it moved; False: the lease is lost."""
        if self.lease is None:
            return False
        cursor, self._stored_at = self.cursor, monotonic()
        if self._source.is_durable and cursor > self._stored:
            if not self.lease.store(cursor, self._missed):
                return False
            self._stored = cursor
        return True

    def waiting_subscriber(self, wake_event: Any) -> WaitingSubscriber:
        return WaitingSubscriber(self._source.channel_row.name, self.last, self.made, wake_event)

    def note_news(self, news: WaitingSubscriber) -> None:
        if news.made != self.made:
            self._restart(news.made, news.last)
        else:
            self.last = max(news.last, self.last)

    def _read_channel(self) -> None:
        channels = ChannelRow.objects.using(self._source.using).filter(pk=self._source.channel_row.name)
        read = channels.values_list("last", "made").first
        if (row := retrying(connections[self._source.using], read)) is not None:
            last, made = row
            self.note_news(WaitingSubscriber(self._source.channel_row.name, last, made))

    def _read_on(self) -> None:
        """Read the next messages after the cursor; note those that were removed before they were read."""
        rows = MessageRow.objects.using(self._source.using).order_by("number")
        wanted = rows.filter(channel_id=self._source.channel_row.name, number__gt=self.cursor)
        batch = retrying(connections[self._source.using], lambda: list(wanted.values_list(*COLUMNS)[:BATCH]))
        if batch and (made := batch[0][-1]) != self.made:  # another channel of this name
            self._restart(made, batch[0][0])
            return
        # Numbers have no gaps, so missing ones were removed; if there are no rows, all up to ``last``.
        first = batch[0][0] if batch else self.last + 1
        self.last = max(self.last, batch[-1][0] if batch else 0)
        if first > self.cursor + 1:
            self._note_missed(self.cursor + 1, first - 1)
        for number, row in enumerate(batch, first):
            if row[0] != number:  # the next query finds the rest
                break
            self._read.append(row)

    def _note_missed(self, first: int, last: int) -> None:
        self._missing = first, last
        self.cursor, self._missed = last, self._missed + last - first + 1
        if self.lease is not None and self._source.is_durable:
            self.lease.emit_missed(self._source.channel_row.name, self._source.name, first, last)
        logger.warning("%s", self._messages_missed(first, last))

    def _messages_missed(self, first: int, last: int) -> MessagesMissed:
        return MessagesMissed(self._source.channel_row.name, self._source.display_name, first, last)

    def _restart(self, made: int, last: int) -> None:
        """Begin at the start of a channel that was removed and created again."""
        logger.warning("channel %r was removed and created again", self._source.channel_row.name)
        if self._source.is_durable:
            self.drop_lease()
        else:
            self.cursor, self.last, self.made, self._turn = 0, last, made, self._turn + 1

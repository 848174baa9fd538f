"""Polls for new messages, with one query for all waiting subscribers of this process and database.

A waiting subscriber needs no connection, and under asyncio no thread. It wakes at once for messages of this process, by
a hint for messages of other processes, and without hints after at most half a second.
"""

import logging
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import connections

from resourcepool import hints
from resourcepool.clock import monotonic
from resourcepool.db.background import CHANNELS, Routine, background_thread
from resourcepool.db.dialect import DbNow
from resourcepool.db.retry import retrying
from resourcepool.db.rows import batched
from resourcepool.db.threads import per_process
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.locks.channels.models import Channel as ChannelRow, Subscription

PAUSES = (0.01, 0.1, 0.5)  # shortest (s); share of the time since the last new message; longest (s)
OUTAGE = 1.0  # seconds between polls while the database is unavailable
BATCH = 500  # channels in one query
MAX_HINTS = 1_000  # processes per message
MAX_CACHED_CHANNELS = 10_000
ADDRESSES_CACHED_FOR = 1.0  # seconds

logger = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class WaitingSubscriber:
    """A waiting subscriber; ``last`` and ``made`` of its channel are updated before its bell rings."""

    channel: str
    last: int
    made: int
    wake_event: Any = None


class Poller:
    """Polls one database."""

    def __init__(self, using: str) -> None:
        self._using, self._waiting = using, dict[WaitingSubscriber, None]()
        self._routine: Routine | None = None
        self._new_at, self._is_away = monotonic(), False

    def add(self, subscriber: WaitingSubscriber) -> None:
        """Wake it when there is a new message. Raises RuntimeError if no thread can be started."""
        self._waiting[subscriber] = None
        if hints.is_enabled():
            hints.listen(self.poll_now)
        thread = background_thread(self._using)
        self._routine = thread.routine(CHANNELS, self._turn, lambda: bool(self._waiting))
        thread.daemon.ensure_started()
        self._routine.bring_forward(monotonic() + self._pause())

    def remove(self, subscriber: WaitingSubscriber) -> None:
        self._waiting.pop(subscriber, None)

    def poll_now(self) -> None:
        if self._waiting and self._routine is not None:
            self._routine.wake()

    def _turn(self) -> float:
        for subscriber in list(self._waiting):
            if subscriber.wake_event.is_orphaned:
                self.remove(subscriber)
        try:
            news = self._read({subscriber.channel for subscriber in list(self._waiting)})
        except DatabaseUnavailable as error:
            if not self._is_away:
                logger.warning("%s; %d subscribers are waiting", error, len(self._waiting))
            self._is_away = True
            return monotonic() + OUTAGE
        self._is_away = False
        for subscriber in list(self._waiting):
            last, made = news.get(subscriber.channel, (subscriber.last, subscriber.made))
            if last > subscriber.last or made != subscriber.made:
                subscriber.last, subscriber.made, self._new_at = last, made, monotonic()
                self.remove(subscriber)
                subscriber.wake_event.wake()
        return monotonic() + self._pause() if self._waiting else float("inf")

    def _pause(self) -> float:
        shortest, share, longest = PAUSES
        return min(max(shortest, share * (monotonic() - self._new_at)), longest)

    def _read(self, names: set[str]) -> dict[str, tuple[int, int]]:
        news: dict[str, tuple[int, int]] = {}
        for batch in batched(sorted(names), BATCH):
            rows = ChannelRow.objects.using(self._using).filter(pk__in=batch)
            read = partial(list[Any], rows.values_list("pk", "last", "made"))
            news |= {name: (last, made) for name, last, made in retrying(connections[self._using], read)}
        return news


class Pollers:
    """The pollers of this process by database; wakes subscribers when this process publishes."""

    def __init__(self) -> None:
        self._pollers: dict[str, Poller] = {}
        self._addresses: dict[tuple[str, str], tuple[float, list[int]]] = {}

    def on(self, using: str) -> Poller:
        return self._pollers.get(using) or self._pollers.setdefault(using, Poller(using))

    def notify_after_commit(self, using: str, channel: str) -> None:
        """Make all subscribers of this channel poll after the caller's commit."""
        hints.after_commit(using, self._notify, using, channel)

    def _notify(self, using: str, channel: str) -> None:
        if using in self._pollers:
            self._pollers[using].poll_now()
        if not hints.is_enabled():
            return
        read_at, addresses = self._addresses.get((using, channel), (-ADDRESSES_CACHED_FOR, []))
        if monotonic() - read_at >= ADDRESSES_CACHED_FOR:
            readers = Subscription.objects.using(using).filter(channel_id=channel, busy_before__gt=DbNow())
            others = readers.filter(address__gt=0).exclude(address=hints.address())
            addresses = list(others.values_list("address", flat=True).distinct()[:MAX_HINTS])
            if len(self._addresses) >= MAX_CACHED_CHANNELS:
                self._addresses.clear()
            self._addresses[using, channel] = monotonic(), addresses
        for address in addresses:
            hints.send(address)


pollers = per_process(Pollers)

"""What is measured: ``Proxy.pool.acquire`` and ``lease.release()``, as a user would call them."""

import os
import random
import time
from typing import Any, ClassVar

from benchmarks.contestants import Contestant
from benchmarks.numbers import TicketNumbers
from benchmarks.plan import BUSY, NARROW, Point


class Ours(Contestant):
    """The default settings, in a process that Django has been set up in."""

    asks: ClassVar[dict[str, Any]] = {}  # what acquire is called with, beside the timeout

    @classmethod
    def prepare(cls, url: str, rows: int) -> None:
        from django.db import connections
        from django.test import override_settings

        from resourcepool.hints.choice import load
        from resourcepool.models import Event, Proxy, Ticket

        with override_settings(RESOURCEPOOL=cls.chosen()):
            load()  # hints, as the app does when it starts
        Event.objects.all()._raw_delete("default")
        Ticket.objects.all()._raw_delete("default")
        Proxy.objects.all()._raw_delete("default")
        numbers = list(range(rows))
        random.shuffle(numbers)
        Proxy.objects.bulk_create(
            [Proxy(host=f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}", port=3128) for n in numbers], batch_size=1000
        )
        connections.close_all()

    @classmethod
    def settings(cls) -> dict[str, Any]:
        """Return what differs from the defaults in RESOURCEPOOL."""
        return {}

    @classmethod
    def chosen(cls) -> dict[str, Any]:
        """Return RESOURCEPOOL with that."""
        from django.conf import settings

        return {**settings.RESOURCEPOOL, **cls.settings()}

    def __init__(self, url: str, number: int) -> None:
        from django.conf import settings
        from django.db import connection

        from resourcepool.models import Proxy

        super().__init__(url, number)
        settings.RESOURCEPOOL = self.chosen()
        connection.ensure_connection()
        self.pool: Any = Proxy.pool
        self._numbers = TicketNumbers()

    def acquire(self) -> Any:
        """Return a lease; its ticket, if it took one, is in ``notes``."""
        from resourcepool.conf import ticket_ttl

        lease = self.pool.acquire(timeout=60, **self.asks)
        returned_at = time.monotonic()
        # What a handed-over row has left, by the database's clock, tells when it was given.
        given_at = lease._trust.sent_at + lease._trust.valid_for - ticket_ttl()
        self.notes = [(number, returned_at, given_at) for number in self._numbers.pop()]
        return lease

    def cycle(self, hold: float) -> float:
        began = time.monotonic()
        lease = self.acquire()
        waited = time.monotonic() - began
        time.sleep(hold) if hold else None
        lease.release()
        return waited


class Sticky(Ours):
    """Ours, by the strategy ``sticky``."""

    name = "resourcepool, sticky"
    asks = {"strategy": "sticky"}

    @classmethod
    def takes_part(cls, point: Point) -> bool:
        return not point.is_contended and not point.is_large  # rows that are handed over have no strategy


class Spread(Ours):
    """Ours as it comes: the default strategy is ``spread``."""

    name = "resourcepool, spread"


class SpreadWithoutHistory(Ours):
    """``Spread``, and nothing of what happens is recorded."""

    name = "resourcepool, spread without history"
    databases = ("mysql",)

    @classmethod
    def takes_part(cls, point: Point) -> bool:
        return point.is_contended and point not in NARROW

    @classmethod
    def settings(cls) -> dict[str, Any]:
        return {"HISTORY": False}


class Hinted(Ours):
    """``Spread``; waiters are told that something came free."""

    @classmethod
    def takes_part(cls, point: Point) -> bool:
        return point.is_contended and point not in BUSY


class SpreadHintedByRedis(Hinted):
    """By a message through Redis, on MariaDB."""

    name = "resourcepool, spread with hints by Redis"
    databases = ("mysql",)
    needs_redis = True

    @classmethod
    def settings(cls) -> dict[str, Any]:
        return {"HINTS": os.environ["BENCH_REDIS"]}


class SpreadHintedByPostgreSQL(Hinted):
    """By NOTIFY, on PostgreSQL."""

    name = "resourcepool, spread with hints by NOTIFY"
    databases = ("postgres",)

    @classmethod
    def settings(cls) -> dict[str, Any]:
        return {"HINTS": "postgresql"}

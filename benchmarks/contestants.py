"""Ways to hand out rows to processes: ours, and what others do.

Each is a class whose ``prepare`` makes the rows, and whose instances, one in each process, run a cycle: acquire, hold
for so many seconds, release; and return how many seconds the acquiring took.
"""

import random
import time
from typing import Any, ClassVar, Protocol
from urllib.parse import urlsplit

from benchmarks.driver import MOMENT, SOON, Driver

IDLE = 0.001  # seconds: what those without a line of waiters sleep when nothing is free


class Contestant(Protocol):
    """What every way of handing out has to offer."""

    name: ClassVar[str]
    databases: ClassVar[tuple[str, ...]]

    @classmethod
    def prepare(cls, url: str, rows: int) -> None:
        """Make ``rows`` free rows."""

    def __init__(self, url: str, number: int) -> None: ...

    def cycle(self, hold: float) -> float: ...


class Table:
    """Those that speak to a table of their own through the bare driver."""

    databases = ("mysql", "postgres", "sqlite")

    @classmethod
    def prepare(cls, url: str, rows: int) -> None:
        db = Driver(url)
        kind = urlsplit(url).scheme
        db.execute("DROP TABLE IF EXISTS bench")
        db.execute(f"CREATE TABLE bench (id INTEGER PRIMARY KEY, busy_before {MOMENT[kind]}, fence BIGINT)")
        for start in range(0, rows, 1000):
            some = range(start + 1, min(start + 1000, rows) + 1)
            values = ", ".join(f"({pk}, '2000-01-01', 0)" for pk in some)
            db.execute(f"INSERT INTO bench VALUES {values}")
        db.execute("CREATE INDEX bench_free ON bench (busy_before)")
        db.close()

    def __init__(self, url: str, number: int) -> None:
        self.db = Driver(url)
        self.number = number


class RawLimit(Table):
    """Two UPDATEs by primary key, each process on its own row: nobody can be faster with two durable commits."""

    name = "raw limit"

    def __init__(self, url: str, number: int) -> None:
        super().__init__(url, number)
        self.pk = number + 1

    def cycle(self, hold: float) -> float:
        began = time.monotonic()
        take = f"UPDATE bench SET busy_before = {self.db.soon}, fence = fence + 1 WHERE id = %s"
        give = f"UPDATE bench SET busy_before = {self.db.now}, fence = fence + 1 WHERE id = %s"
        self.db.again(lambda: self.db.execute(take, self.pk))
        waited = time.monotonic() - began
        time.sleep(hold) if hold else None
        self.db.again(lambda: self.db.execute(give, self.pk))
        return waited


class Document(Table):
    """Document 000 as it is written, its sleeps taken out: read every free row, try the first, compare the moment."""

    name = "document 000"
    databases = ("mysql",)

    def cycle(self, hold: float) -> float:
        began = time.monotonic()
        while True:
            now = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
            free = self.db.rows("SELECT id, busy_before FROM bench WHERE busy_before < %s", now)
            if free:
                pk, moment = free[0]
                until = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() + 60 + self.number))
                lock = "UPDATE bench SET busy_before = %s WHERE id = %s AND busy_before = %s"
                if self.db.again(lambda: self.db.execute(lock, until, pk, moment)):  # noqa: B023 (called at once)
                    break
            elif hold:
                time.sleep(IDLE)
        waited = time.monotonic() - began
        time.sleep(hold) if hold else None
        self.db.again(lambda: self.db.execute("UPDATE bench SET busy_before = '2000-01-01' WHERE id = %s", pk))
        return waited


class SkipLocked(Table):
    """SELECT .. FOR UPDATE SKIP LOCKED, UPDATE, COMMIT: what most queues in a table do."""

    name = "SKIP LOCKED"
    databases = ("mysql",)

    def cycle(self, hold: float) -> float:
        began = time.monotonic()
        while (pk := self.db.again(self._take)) is None:
            time.sleep(IDLE) if hold else None
        waited = time.monotonic() - began
        time.sleep(hold) if hold else None
        give = f"UPDATE bench SET busy_before = {self.db.now}, fence = fence + 1 WHERE id = %s"
        self.db.again(lambda: self.db.execute(give, pk))
        return waited

    def _take(self) -> Any:
        self.db.execute("BEGIN")
        free = self.db.rows(
            f"SELECT id FROM bench WHERE busy_before <= {self.db.now} ORDER BY busy_before LIMIT 1"
            " FOR UPDATE SKIP LOCKED"
        )
        if free:
            take = f"UPDATE bench SET busy_before = {SOON['mysql']}, fence = fence + 1 WHERE id = %s"
            self.db.execute(take, free[0][0])
        self.db.execute("COMMIT")
        return free[0][0] if free else None


class BlockingPop:
    """Redis BLPOP and RPUSH: a list of what is free. Nothing is durable, nothing is fenced, a crash loses the item."""

    name = "Redis BLPOP"
    databases = ("redis",)

    @classmethod
    def prepare(cls, url: str, rows: int) -> None:
        import redis

        with redis.Redis.from_url(url) as client:
            client.delete("bench")
            for start in range(0, rows, 1000):
                client.rpush("bench", *range(start, min(start + 1000, rows)))

    def __init__(self, url: str, number: int) -> None:
        import redis

        self.client = redis.Redis.from_url(url)

    def cycle(self, hold: float) -> float:
        began = time.monotonic()
        _, item = self.client.blpop(["bench"])
        waited = time.monotonic() - began
        time.sleep(hold) if hold else None
        self.client.rpush("bench", item)
        return waited


class Ours:
    """``Proxy.pool.acquire`` and ``release``, in a process that Django has been set up in."""

    databases = ("mysql", "postgres", "sqlite")
    strategy: ClassVar[str]
    has_history: ClassVar[bool] = False

    @classmethod
    def prepare(cls, url: str, rows: int) -> None:
        from django.db import connections

        from resourcepool.models import Event, Proxy, Ticket

        Event.objects.all()._raw_delete("default")
        Ticket.objects.all()._raw_delete("default")
        Proxy.objects.all()._raw_delete("default")
        numbers = list(range(rows))
        random.shuffle(numbers)
        Proxy.objects.bulk_create(
            [Proxy(host=f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}", port=3128) for n in numbers], batch_size=1000
        )
        connections.close_all()

    def __init__(self, url: str, number: int) -> None:
        from django.conf import settings
        from django.db import connection

        from resourcepool.leases.poller import poller
        from resourcepool.models import Proxy

        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY": self.has_history}
        connection.ensure_connection()
        self.pool: Any = Proxy.pool
        self.notes: list[tuple[int, float]] = []  # (ticket, moment of the claim) if this cycle stood in line
        self._waiters: list[Any] = []
        join = poller.join

        def remembered(request: Any) -> Any:
            self._waiters.append(join(request))
            return self._waiters[-1]

        setattr(poller, "join", remembered)  # noqa: B010 (the type checker knows it as a method)

    def cycle(self, hold: float) -> float:
        self._waiters.clear()
        began = time.monotonic()
        lease = self.pool.acquire(timeout=60, strategy=self.strategy)
        waited = time.monotonic() - began
        self.notes = [(waiter.number, lease.trust.granted_at) for waiter in self._waiters]
        time.sleep(hold) if hold else None
        lease.release()
        return waited


class Sticky(Ours):
    """Ours, by the strategy ``sticky``."""

    name = "resourcepool, sticky"
    strategy = "sticky"


class Spread(Ours):
    """Ours, by the strategy ``spread`` (the default)."""

    name = "resourcepool, spread"
    strategy = "spread"


class StickyWithHistory(Sticky):
    """The same, and everything that happens is written down."""

    name = "resourcepool, sticky with history"
    has_history = True


class SpreadWithHistory(Spread):
    """The same, and everything that happens is written down, as by default."""

    name = "resourcepool, spread with history"
    has_history = True


CONTESTANTS: tuple[Any, ...] = (
    *(RawLimit, Document, SkipLocked, BlockingPop),
    *(Sticky, Spread, StickyWithHistory, SpreadWithHistory),
)

"""How others hand out rows: the raw limit, SKIP LOCKED, and a list in Redis."""

import os
import time
from typing import Any
from urllib.parse import urlsplit

from benchmarks.contestants import Contestant
from benchmarks.driver import MOMENT, SOON, Driver
from benchmarks.plan import BUSY, Point

IDLE = 0.001  # seconds: what those without a line of waiters sleep when nothing is free


class Table(Contestant):
    """Those that speak to a table of their own through the bare driver."""

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
        super().__init__(url, number)
        self.db = Driver(url)


class RawLimit(Table):
    """Two UPDATEs by primary key, each process on its own row: nobody can be faster with two durable commits."""

    name = "raw limit"
    databases = ("mysql", "oracle_mysql", "postgres")

    @classmethod
    def takes_part(cls, point: Point) -> bool:
        return not point.is_contended and not point.is_large  # each process needs a row of its own

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


class SkipLocked(Table):
    """SELECT .. FOR UPDATE SKIP LOCKED, UPDATE, COMMIT: what most queues in a table do."""

    name = "SKIP LOCKED"
    databases = ("mysql", "oracle_mysql")

    @classmethod
    def takes_part(cls, point: Point) -> bool:
        return not point.is_large and point not in BUSY

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


class BlockingPop(Contestant):
    """Redis BLPOP and RPUSH: a list of what is free. Nothing is durable, nothing is fenced, a crash loses the item."""

    name = "Redis BLPOP"
    databases = ("mysql",)
    needs_redis = True

    @classmethod
    def takes_part(cls, point: Point) -> bool:
        return not point.is_large and point not in BUSY

    @classmethod
    def prepare(cls, url: str, rows: int) -> None:
        with redis_client() as client:
            client.delete("bench")
            for start in range(0, rows, 1000):
                client.rpush("bench", *range(start, min(start + 1000, rows)))

    def __init__(self, url: str, number: int) -> None:
        super().__init__(url, number)
        self.client = redis_client()

    def cycle(self, hold: float) -> float:
        began = time.monotonic()
        _, item = self.client.blpop(["bench"])
        waited = time.monotonic() - began
        time.sleep(hold) if hold else None
        self.client.rpush("bench", item)
        return waited


def redis_client() -> Any:
    """Return a new connection to the Redis of this run."""
    import redis

    return redis.Redis.from_url(os.environ["BENCH_REDIS"])

"""A sketch of waiting by hand-over, to see what it can reach: a release gives its row to one of the first in line.

It goes through Django's connection, as the app does. Left out: selectors, priorities, renewal, several rows at once,
history, dead waiters.
"""

import random
import time
from collections.abc import Callable
from typing import Any

from benchmarks.contestants import Contestant
from benchmarks.driver import TRIES, Driver, is_conflict
from benchmarks.others import redis_client
from benchmarks.plan import Point

NOW = "UTC_TIMESTAMP(6)"
RACE = 4  # one of the first so many, at random: releasers that all pick the very first ticket meet there
LOOK_AFTER = 0.95  # of the mean wait: the first look
FALLBACK = 0.25  # seconds without a message, after which it looks
LONGEST_WAIT = 30.0  # seconds
AT_ONCE = 10  # used tickets that are removed by one statement

KEY = "id BIGINT AUTO_INCREMENT PRIMARY KEY, busy_before DATETIME(6) NOT NULL, fence BIGINT NOT NULL DEFAULT 0"
TABLES = {
    "bench_row": "holder VARCHAR(80) NOT NULL DEFAULT '', KEY (busy_before)",
    "bench_ticket": "granted BIGINT NOT NULL, waiter INT NOT NULL, KEY (granted, id)",
}
TAKE = f"INSERT INTO bench_ticket (busy_before, granted, fence, waiter) VALUES ({NOW} + INTERVAL 5 SECOND, 0, 0, %s)"
# Both rows change, or neither.
GIVE = (
    f"UPDATE bench_row, bench_ticket SET bench_row.busy_before = {NOW} + INTERVAL %s SECOND,"
    " bench_row.fence = bench_row.fence + 1, bench_row.holder = bench_ticket.id,"
    " bench_ticket.granted = bench_row.id, bench_ticket.fence = %s"
    " WHERE bench_row.id = %s AND bench_row.fence = %s AND bench_ticket.id = %s AND bench_ticket.granted = 0"
)
FREE = f"SELECT id, fence FROM bench_row WHERE busy_before <= {NOW} LIMIT 64"
FIRST = (
    f"SELECT id, waiter FROM bench_ticket WHERE granted = 0 AND busy_before > {NOW} ORDER BY id LIMIT {RACE}"
)
MINE = "SELECT granted, fence FROM bench_ticket WHERE id = %s"
LET_GO = (
    f"UPDATE bench_row SET busy_before = {NOW}, fence = fence + 1, holder = '' WHERE id = %s AND fence = %s"
)

Hold = tuple[int, int]  # row, fence


class Polling(Contestant):
    """Who waits looks, by key, at its own ticket."""

    name = "hand-over sketch, polling"
    databases = ("mysql", "oracle_mysql")

    @classmethod
    def takes_part(cls, point: Point) -> bool:
        return point.is_contended

    @classmethod
    def prepare(cls, url: str, rows: int) -> None:
        db = Driver(url)
        for table, columns in TABLES.items():
            db.execute(f"DROP TABLE IF EXISTS {table}")
            db.execute(f"CREATE TABLE {table} ({KEY}, {columns}) ENGINE=InnoDB")
        db.cursor.executemany("INSERT INTO bench_row (busy_before) VALUES (%s)", [("2001-01-01",)] * rows)
        db.close()

    def __init__(self, url: str, number: int) -> None:
        from django.db import connection

        super().__init__(url, number)
        self.cursor = connection.cursor()
        self.mean_wait, self.used = 0.05, list[int]()

    def cycle(self, hold: float) -> float:
        began = time.monotonic()
        held, ticket = self.acquire(began)
        granted_at = time.monotonic()
        self.notes = [(ticket, granted_at, None)]
        self.mean_wait = 0.8 * self.mean_wait + 0.2 * (granted_at - began)
        time.sleep(hold)
        self.release(*held)
        return granted_at - began

    def acquire(self, began: float) -> tuple[Hold, int]:
        self.run(TAKE, self.number)
        ticket = int(self.cursor.lastrowid)
        held = self.claim_free(ticket) or self.wait(ticket, began)
        self.used.append(ticket)
        if len(self.used) >= AT_ONCE:
            self.run(f"DELETE FROM bench_ticket WHERE id IN ({', '.join(map(str, self.used))})")
            self.used = []
        return held, ticket

    def claim_free(self, ticket: int) -> Hold | None:
        """Take what came free while nobody waited, or between a release that saw no ticket and a new ticket."""
        self.run(FREE)
        free = self.cursor.fetchall()
        for row, fence in random.sample(free, min(1, len(free))):
            if self.run(f"{GIVE} AND bench_row.busy_before <= {NOW}", 60, fence + 1, row, fence, ticket):
                return row, fence + 1
        return None

    def wait(self, ticket: int, began: float) -> Hold:
        time.sleep(self.mean_wait * LOOK_AFTER)
        pause = 0.008
        while not (held := self.look(ticket, began)):
            time.sleep(pause)
            pause = min(pause * 1.3, 0.02)
        return held

    def look(self, ticket: int, began: float) -> Hold | None:
        self.run(MINE, ticket)
        row, fence = self.cursor.fetchone()
        waited = time.monotonic() - began
        if waited > LONGEST_WAIT:
            raise TimeoutError(f"waited for {waited:.0f} s")
        return (row, fence) if row else self.claim_free(ticket) if waited > 1 else None

    def release(self, row: int, fence: int) -> None:
        while True:
            self.run(FIRST)
            first = self.cursor.fetchall()
            if not first:
                self.run(LET_GO, row, fence)
                return
            for ticket, waiter in random.sample(first, len(first)):
                if self.run(GIVE, 2, fence + 1, row, fence, ticket):
                    self.tell(waiter, f"{ticket} {row} {fence + 1}")
                    return

    def tell(self, waiter: int, text: str) -> None:
        """Nobody is told."""

    def run(self, sql: str, *params: Any) -> int:
        """Send one statement, again after a deadlock; return how many rows it matched."""
        for turn in range(TRIES):
            try:
                self.cursor.execute(sql, params)
                return int(self.cursor.rowcount)
            except Exception as error:
                if not is_conflict(error) or turn == TRIES - 1:
                    raise
        return 0


class Messages(Polling):
    """Who waits is told by a message through Redis, and looks only when none comes."""

    name = "hand-over sketch, messages"
    databases = ("mysql",)
    needs_redis = True

    def __init__(self, url: str, number: int) -> None:
        super().__init__(url, number)
        self.redis = redis_client()
        messages = self.redis.pubsub(ignore_subscribe_messages=True)
        messages.subscribe(f"bench.{number}")
        messages.get_message(timeout=1)
        self.next_message: Callable[..., Any] = messages.get_message

    def wait(self, ticket: int, began: float) -> Hold:
        while True:
            message = self.next_message(timeout=FALLBACK)
            if message is None:
                if held := self.look(ticket, began):
                    return held
            else:
                told, row, fence = map(int, message["data"].split())
                if told == ticket:
                    return row, fence

    def tell(self, waiter: int, text: str) -> None:
        self.redis.publish(f"bench.{waiter}", text)

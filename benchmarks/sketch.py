"""Two sketches of waiting by hand-over, to see what it can reach: a release gives its row to one of the first in line.

They go through Django's connection, as the app does. Left out: selectors, priorities, renewal, several rows at once,
history, dead waiters.
"""

import random
import time
from typing import Any, ClassVar
from urllib.parse import urlsplit

from benchmarks.contestants import Contestant
from benchmarks.driver import MOMENT, TRIES, Driver, is_conflict
from benchmarks.plan import Point

RACE = 4  # one of the first so many, at random: releasers that all pick the very first ticket meet there
LONGEST_WAIT = 30.0  # seconds
AT_ONCE = 10  # used tickets that are removed by one statement

KEY = {
    "mysql": "BIGINT AUTO_INCREMENT PRIMARY KEY",
    "postgres": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
}
TABLES = (
    "CREATE TABLE bench_row ({columns}, holder VARCHAR(80) NOT NULL)",
    "CREATE INDEX bench_row_free ON bench_row (busy_before)",
    "CREATE TABLE bench_ticket ({columns}, granted BIGINT NOT NULL)",
    "CREATE INDEX bench_ticket_line ON bench_ticket (granted, id)",
)
NOW = {"mysql": "UTC_TIMESTAMP(6)", "postgres": "STATEMENT_TIMESTAMP()"}  # one for which an index is used

TAKE = "INSERT INTO bench_ticket (busy_before, fence, granted) VALUES ({now} + INTERVAL '5' SECOND, 0, 0)"
FREE = "SELECT id, fence FROM bench_row WHERE busy_before <= {now} LIMIT 64"
FIRST = f"SELECT id FROM bench_ticket WHERE granted = 0 AND busy_before > {{now}} ORDER BY id LIMIT {RACE}"
MINE = "SELECT granted, fence FROM bench_ticket WHERE id = %(ticket)s"
CLAIM = (
    "UPDATE bench_row SET busy_before = {now} + INTERVAL '60' SECOND, fence = fence + 1, holder = 'bench'"
    " WHERE id = %(row)s AND fence = %(fence)s AND busy_before <= {now}"
)
LET_GO = (
    "UPDATE bench_row SET busy_before = {now}, fence = fence + 1, holder = ''"
    " WHERE id = %(row)s AND fence = %(fence)s"
)
# The hand-over: row and ticket change, or neither.
GIVE = {
    "mysql": (
        "UPDATE bench_row r, bench_ticket t SET r.busy_before = {now} + INTERVAL %(seconds)s SECOND,"
        " r.fence = r.fence + 1, r.holder = t.id, t.granted = r.id, t.fence = %(fence)s + 1"
        " WHERE r.id = %(row)s AND r.fence = %(fence)s AND t.id = %(ticket)s AND t.granted = 0{also}"
    ),
    # The ticket is locked first: of two releases that see it waiting, the second one finds that it is not.
    "postgres": (
        "WITH t AS (SELECT id FROM bench_ticket WHERE id = %(ticket)s AND granted = 0 FOR UPDATE), r AS ("
        "UPDATE bench_row r SET busy_before = {now} + %(seconds)s * INTERVAL '1 second', fence = r.fence + 1,"
        " holder = t.id FROM t WHERE r.id = %(row)s AND r.fence = %(fence)s{also} RETURNING r.id, r.fence)"
        " UPDATE bench_ticket SET granted = r.id, fence = r.fence FROM r WHERE bench_ticket.id = %(ticket)s"
    ),
}

Hold = tuple[int, int]  # row, fence


class HandOver(Contestant):
    """Every request takes a ticket; who waits looks at it, by key."""

    name = "hand-over sketch"
    databases = ("mysql", "oracle_mysql")  # elsewhere the other one is enough
    mean_wait = 0.05  # seconds, like all times here; at first
    first_look: ClassVar[float] = 0.95  # of the mean wait
    pause: ClassVar[float] = 0.008  # after the first look; then ever longer

    @classmethod
    def takes_part(cls, point: Point) -> bool:
        return point.is_contended

    @classmethod
    def prepare(cls, url: str, rows: int) -> None:
        db, kind = Driver(url), urlsplit(url).scheme
        db.execute("DROP TABLE IF EXISTS bench_row, bench_ticket")
        columns = f"id {KEY[kind]}, busy_before {MOMENT[kind]} NOT NULL, fence BIGINT NOT NULL"
        for sql in TABLES:
            db.execute(sql.format(columns=columns))
        free = [("2001-01-01",)] * rows
        db.cursor.executemany("INSERT INTO bench_row (busy_before, fence, holder) VALUES (%s, 0, '')", free)
        db.close()

    def __init__(self, url: str, number: int) -> None:
        from django.db import connection

        super().__init__(url, number)
        self.cursor = connection.cursor()
        self.now, self.used = NOW[urlsplit(url).scheme], list[int]()
        self.returns_key = connection.vendor == "postgresql"
        self.give_sql = GIVE[urlsplit(url).scheme]

    def cycle(self, hold: float) -> float:
        began, self.notes = time.monotonic(), []
        held = self.acquire(began)
        waited = time.monotonic() - began
        time.sleep(hold)
        self.release(*held)
        return waited

    def acquire(self, began: float) -> Hold:
        ticket = self.take()
        held = self.claim_free(ticket) or self.wait(ticket, began)
        granted_at = time.monotonic()
        self.notes = [(ticket, granted_at, None)]
        self.mean_wait = 0.8 * self.mean_wait + 0.2 * (granted_at - began)
        self.remove_later(ticket)
        return held

    def take(self) -> int:
        """Stand in line; return the ticket."""
        self.run(TAKE + " RETURNING id" * self.returns_key)
        return int(self.cursor.fetchone()[0] if self.returns_key else self.cursor.lastrowid)

    def remove_later(self, ticket: int) -> None:
        self.used.append(ticket)
        if len(self.used) >= AT_ONCE:
            self.run(f"DELETE FROM bench_ticket WHERE id IN ({', '.join(map(str, self.used))})")
            self.used = []

    def claim_free(self, ticket: int) -> Hold | None:
        """Take what came free while nobody waited, or between a release that saw no ticket and a new ticket."""
        for row, fence in self.free(1):
            if self.give(row, fence, ticket, 60, " AND r.busy_before <= {now}"):
                return row, fence + 1
        return None

    def free(self, count: int) -> list[Hold]:
        """Return so many free rows, at random."""
        self.run(FREE)
        found = self.cursor.fetchall()
        return random.sample(found, min(count, len(found)))

    def give(self, row: int, fence: int, ticket: int, seconds: int, also: str = "") -> int:
        sql = self.give_sql.replace("{also}", also)
        return self.run(sql, row=row, fence=fence, ticket=ticket, seconds=seconds)

    def wait(self, ticket: int, began: float) -> Hold:
        time.sleep(self.mean_wait * self.first_look)
        pause = self.pause
        while not (held := self.look(ticket, began)):
            time.sleep(pause)
            pause = min(pause * 1.3, 0.02)
        return held

    def look(self, ticket: int, began: float) -> Hold | None:
        self.run(MINE, ticket=ticket)
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
                self.run(LET_GO, row=row, fence=fence)
                return
            if any(self.give(row, fence, ticket, 2) for (ticket,) in random.sample(first, len(first))):
                return

    def run(self, sql: str, **params: Any) -> int:
        """Send one statement, again after a deadlock; return how many rows it matched."""
        for turn in range(TRIES):
            try:
                self.cursor.execute(sql.format(now=self.now), params)
                return int(self.cursor.rowcount)
            except Exception as error:
                if not is_conflict(error) or turn == TRIES - 1:
                    raise
        return 0


class ClaimFirst(HandOver):
    """A free row is claimed first; a request takes a ticket when that fails, or when the one before had to wait."""

    name = "claim-first sketch"
    databases = ("mysql", "oracle_mysql", "postgres")
    mean_wait = 0.02  # of those that had to wait
    first_look = 0.6
    pause = 0.004

    def __init__(self, url: str, number: int) -> None:
        super().__init__(url, number)
        self.has_waited = False

    def acquire(self, began: float) -> Hold:
        if not self.has_waited and (held := self.claim_first()):
            return held
        ticket = self.take()
        held = self.claim_free(ticket)
        self.has_waited = not held
        held = held or self.wait(ticket, began)
        granted_at = time.monotonic()
        self.notes = [(ticket, granted_at, None)]
        if self.has_waited:
            self.mean_wait = 0.8 * self.mean_wait + 0.2 * (granted_at - began)
        self.remove_later(ticket)
        return held

    def claim_first(self) -> Hold | None:
        """Take a free row without a ticket."""
        return next(
            ((row, fence + 1) for row, fence in self.free(2) if self.run(CLAIM, row=row, fence=fence)), None
        )

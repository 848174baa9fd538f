"""Servers that take what is sent and answer nothing: whoever waits for one is let go after a while.

Such a server is frozen (stopped, or out of its disk), or a network on the way has forgotten the connection. Drivers
wait for it as long as it takes: PostgreSQL's has no limit, MySQL's one that few set. So a thread watches the clock and
hangs up; the statement fails then as if the connection had been lost.
"""

import contextlib
import math
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.leases.alarm import Alarm
from resourcepool.leases.clock import monotonic

LONGEST = 6.0  # seconds for one try; more than the wait for a locked row that the doctor recommends
A_LITTLE = 3.0  # seconds beyond the time-out of a caller
AGAIN = 1.0  # seconds until the next session of the same try is hung up

_mine = threading.local()


@contextlib.contextmanager
def patience(seconds: float = LONGEST) -> Iterator[None]:
    """Let no try of a statement that this thread makes in the block wait for its answer for longer."""
    before: float | None = getattr(_mine, "limit", None)
    _mine.limit = seconds if before is None else min(before, seconds)
    try:
        yield
    finally:
        _mine.limit = before


class Try:
    """One try of something that is asked of a database; without ``patience`` it takes as long as it takes.

    Attributes:
        limit: seconds that it may take; None: as many as it takes.
        until: the moment of this process's clock at which it has taken that long.
        hang_up_at: when to hang up, for the first time or again.
        is_hung_up: it took longer.
    """

    __slots__ = ("__weakref__", "_connecting", "connection", "hang_up_at", "is_hung_up", "limit", "until")

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self.connection, self.is_hung_up = connection, False
        self.limit: float | None = getattr(_mine, "limit", None) if connection.vendor != "sqlite" else None

    def __enter__(self) -> None:
        if self.limit is None:
            return
        connection = self.connection
        self._connecting: AbstractContextManager[None] | None = None
        if dialect.may_connect(connection):
            self._connecting = dialect.connecting_within(connection, self.limit)
            self._connecting.__enter__()
        dialect.know_line(connection)
        self.until = self.hang_up_at = monotonic() + self.limit
        watch.begin(self)

    def __exit__(self, *raised: object) -> None:
        if self.limit is None:
            return
        watch.end(self)
        if self._connecting is not None:
            self._connecting.__exit__(None, None, None)
        if self.is_hung_up and not self.connection.in_atomic_block:
            dialect.close_quietly(self.connection)  # also if the answer came in the very last moment

    @property
    def is_over(self) -> bool:
        """Whether it took as long as it may."""
        return self.limit is not None and monotonic() >= self.until


class Watch:
    """The thread that hangs up, and what it waits for; starts on first use, and afresh after a fork."""

    def __init__(self) -> None:
        # Weak, because whoever is interrupted on the way into a try, or out of it, may not take it out.
        self._tries: dict[int, weakref.ref[Try]] = {}
        self._alarm = Alarm()
        self._is_running = False
        self._hanging_up = threading.Lock()

    def begin(self, one: Try) -> None:
        """Hang up when ``one`` has taken too long."""
        self._tries[id(one)] = weakref.ref(one)
        if not self._is_running:
            with contextlib.suppress(RuntimeError):  # no more threads: it takes as long as it takes
                threading.Thread(target=self._run, name="resourcepool-answers", daemon=True).start()
                self._is_running = True
        if self._is_running and one.until < self._alarm.asked_for:
            self._alarm.bring_forward(one.until)

    def end(self, one: Try) -> None:
        """Leave the connection of ``one`` alone from now on."""
        self._tries.pop(id(one), None)
        if one.is_hung_up:  # noted before this was looked for
            with self._hanging_up:  # over by then
                pass

    def _run(self) -> None:
        try:
            while True:
                self._alarm.reset()
                self._alarm.sleep_until(self._look(monotonic()))
        finally:
            self._is_running = False

    def _look(self, now: float) -> float:
        """Hang up what has taken too long; return when to look again."""
        look_at = math.inf
        for key, found in list(self._tries.items()):
            if (one := found()) is None:
                if self._tries.get(key) is found:
                    self._tries.pop(key, None)
                continue
            if one.hang_up_at <= now:
                with self._hanging_up:
                    one.is_hung_up, one.hang_up_at = True, now + AGAIN  # it may begin another session
                    if self._tries.get(key) is found:
                        dialect.hang_up(one.connection)
            look_at = min(look_at, one.hang_up_at)
        return look_at


def _after_fork() -> None:
    watch.__init__()  # type: ignore[misc]  # the parent's thread, lock and tries are not the child's


watch = Watch()
os.register_at_fork(after_in_child=_after_fork)

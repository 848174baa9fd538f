"""Writes events into the history a moment later, many at once, in a thread with its own connection.

Acquiring and releasing only append to a list. The thread starts with the first event, starts again after a fork, and
closes its connection when it is idle.
"""

import contextlib
import logging
import math
import os
import random
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from django.db import connections, router

from resourcepool.clock import monotonic
from resourcepool.database import background
from resourcepool.database.background import own_connections
from resourcepool.database.wakeup import Wakeup
from resourcepool.history.merge import Entry, merge_events, split_entries
from resourcepool.history.models import Event
from resourcepool.history.writer import write, write_gap
from resourcepool.leases.shutdown import at_exit
from resourcepool.signals import RowEvent, exit_hooks, recorders
from resourcepool.threads.daemon import Daemon

EVERY = 2.0  # seconds between two writes, at most; a longer lease has an event of its acquisition
SPREAD = 0.3  # a write may come earlier by this random share, so that processes do not write together
WRITE_AT_ONCE = 5_000  # waiting events that cause a write at once
BATCH = 500  # events per statement
MAX_WAITING = 20_000  # waiting events; further ones are dropped
MAX_WAITING_OPERATOR = 200_000  # the same for operators' events, because one action may change a whole pool
IDLE = 30.0  # seconds without events after which the connection is closed
PAUSE_AFTER_FAILURE = 5.0  # seconds

logger = logging.getLogger(__name__)


class Recorder:
    """The unwritten events of this process; ``dropped``: number of dropped events not reported yet."""

    def __init__(self) -> None:
        self.dropped = 0
        self._waiting: deque[RowEvent] = deque()
        self._in_hand = 0  # events that are being written
        self._flush_at = 0.0  # not earlier, after a failure of the database
        self._jitter = 0.0  # seconds
        self._database: Any = None
        self._wakeup = Wakeup()
        self._writing = threading.Lock()
        self._thread = Daemon("history", self._run)
        self._writes_at_exit = False

    def note(self, event: RowEvent) -> None:
        """Queue ``event`` to be written."""
        if not self._waiting:
            self._check_database(_database())
            self._jitter = EVERY * SPREAD * random.random()  # noqa: S311 (no secret)
        if len(self._waiting) + self._in_hand >= (MAX_WAITING_OPERATOR if event.actor else MAX_WAITING):
            self._drop()
            return
        self._waiting.append(event)
        if not self._thread.is_running:
            self._start()
        if len(self._waiting) in (1, WRITE_AT_ONCE):
            self._wakeup.bring_forward(self._due_at)

    @property
    def is_idle(self) -> bool:
        """Whether all events are written."""
        return not self._waiting and not self._in_hand

    def forget(self) -> None:
        """Drop the waiting events."""
        self._waiting.clear()
        self.dropped = 0

    def flush(self) -> None:
        """Write all waiting events now, on this thread's connections, after any write of another thread.

        Raises:
            DatabaseUnavailable: unwritten events keep waiting.
        """
        with self._writing:
            self._check_database(_database())
            # All at once, so that as many leases as possible are merged into one event.
            events = list(self._waiting)
            self._in_hand = len(events)
            for _ in events:
                self._waiting.popleft()
            try:
                self._write(merge_events(events))
            finally:
                self._in_hand = 0
            if self.dropped:
                self._report_dropped(self.dropped)

    def flush_within(self, seconds: float) -> None:
        """Write the waiting events of a process that ends without atexit; give up after ``seconds``."""
        if not self.is_idle:
            thread = threading.Thread(target=self._last_flush, name="resourcepool-last-events", daemon=True)
            thread.start()
            thread.join(seconds)

    def _write(self, entries: Sequence[Entry]) -> None:
        for start in range(0, len(entries), BATCH):
            try:
                write(entries[start : start + BATCH])
            except Exception:
                self._waiting.extendleft(reversed(split_entries(entries[start:])))
                raise

    def _drop(self) -> None:
        if not self.dropped:
            logger.error("%d events are waiting to be written: further events are dropped", len(self._waiting))
        self.dropped += 1

    def _report_dropped(self, count: int) -> None:
        """Report in the history and in the log how many events were dropped."""
        write_gap(count)
        self.dropped -= count
        logger.error("%d events were dropped; new events are recorded again", count)

    def _check_database(self, database: Any) -> None:
        """Drop the events for another database: a test database that no longer exists."""
        if database != self._database:
            self.forget()
            self._database = database

    def _start(self) -> None:
        if not self._writes_at_exit:
            at_exit(1, self._last_flush)
            self._writes_at_exit = True
        # RuntimeError: no more threads can start; retried with the next event, or at exit.
        with contextlib.suppress(RuntimeError):
            self._thread.ensure_started()

    def _run(self) -> None:
        with own_connections() as own:
            while True:
                self._wakeup.reset()
                wake_at = self._turn(own)
                if math.isfinite(wake_at) or not own.are_open:
                    self._wakeup.sleep_until(wake_at)
                else:
                    self._wakeup.sleep_until(monotonic() + IDLE)
                    if self.is_idle:
                        with own.turn:
                            own.close()

    def _turn(self, own: background.OwnConnections) -> float:
        """Write the waiting events if they are due; return when to run again."""
        if self._due_at > monotonic():
            return self._due_at
        try:
            with own.turn:
                self.flush()
        except Exception as error:  # noqa: BLE001 (the thread must survive any error)
            why = f"{type(error).__name__}: {error}"
            logger.warning("%d events could not be written yet: %s", len(self._waiting), why)
            self._flush_at = monotonic() + PAUSE_AFTER_FAILURE
        return self._due_at

    @property
    def _due_at(self) -> float:
        """When to write: at once if many events wait, otherwise soon after the first."""
        if len(self._waiting) >= WRITE_AT_ONCE:
            return self._flush_at
        try:
            return max(self._flush_at, self._waiting[0].at + EVERY - self._jitter)
        except IndexError:
            return self._flush_at if self.dropped else math.inf

    def _last_flush(self) -> None:
        if self.is_idle and not self.dropped:
            return
        with own_connections():
            try:
                self.flush()
            except Exception as error:  # noqa: BLE001 (the process ends)
                count = len(self._waiting) + self.dropped
                logger.warning("%d events were not written: %s: %s", count, type(error).__name__, error)


def _database() -> Any:
    """Return the database name of the history."""
    return connections.settings[router.db_for_write(Event)].get("NAME")


def listen() -> None:
    """Record all events of this process from now on."""
    if recorder.note not in recorders:
        recorders.append(recorder.note)
        exit_hooks.append(recorder.flush_within)


def _after_fork() -> None:
    recorder.__init__()  # type: ignore[misc]  # the parent writes its own events


recorder = Recorder()
os.register_at_fork(after_in_child=_after_fork)

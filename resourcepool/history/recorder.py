"""Writes what is told into the history: a moment later, many at once, on a connection of its own.

Whoever acquires or releases only puts a fact into a list. The thread starts with the first fact, starts afresh after a
fork, and rests without a connection when nothing happens.
"""

import logging
import math
import os
import socket
from collections import deque
from functools import partial
from typing import Any

from django.db import DatabaseError, InterfaceError, connections, router

from resourcepool.dialect import DbLater
from resourcepool.exceptions import ResourcePoolError
from resourcepool.history.held import grant, held
from resourcepool.history.models import MAX_ACTOR, MAX_ROW, MAX_TEXT, Event
from resourcepool.leases import background
from resourcepool.leases.alarm import Alarm
from resourcepool.leases.background import own_connections
from resourcepool.leases.clock import monotonic
from resourcepool.leases.retry import retrying
from resourcepool.leases.shutdown import at_exit
from resourcepool.signals import SIGNALS, Fact, What

EVERY = 1.0  # seconds between two writes
BATCH = 500  # events in one statement; as soon as so many wait they are written
MOST = 20_000  # events that wait to be written; what comes on top is dropped
IDLE = 30.0  # seconds without events after which the connection is closed
PAUSE_AFTER_FAILURE = 5.0  # seconds

FAILURES = (DatabaseError, InterfaceError, ResourcePoolError)

logger = logging.getLogger(__name__)

_host = socket.gethostname()[:80]


class Recorder:
    """What this process has still to write; ``dropped`` counts what it never could."""

    def __init__(self) -> None:
        self.dropped = 0
        self._waiting: deque[Fact] = deque()
        self._in_hand: list[Fact] = []
        self._database: Any = None
        self._alarm = Alarm()
        self._is_running = self._writes_at_exit = False

    def note(self, sender: Any, fact: Fact, **_: Any) -> None:
        """Have ``fact`` written, if its pool keeps a history; a receiver of the signals."""
        if not getattr(getattr(sender, "pool", None), "keeps_history", False):
            return
        self._stay_with(_database())
        # What an operator does is never dropped: as many as there are rows, and it answers for somebody.
        if len(self._waiting) >= MOST and not fact.actor:
            self.dropped += 1
            return
        self._waiting.append(fact)
        if not self._is_running:
            self._start()
        if len(self._waiting) in (1, BATCH):
            self._alarm.bring_forward(self._due_at)

    @property
    def is_idle(self) -> bool:
        """Whether everything that was told is written."""
        return not self._waiting and not self._in_hand

    def flush(self) -> None:
        """Write everything that waits, now, on this thread's connections.

        Raises:
            DatabaseUnavailable: what could not be written still waits.
        """
        self._stay_with(_database())
        while self._waiting:
            self._in_hand = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            try:
                write(self._in_hand)
            except Exception:
                self._waiting.extendleft(reversed(self._in_hand))
                raise
            finally:
                self._in_hand = []

    def _stay_with(self, database: Any) -> None:
        """Forget what was told of another database: a test's, which is gone, and this is the real one again."""
        if database != self._database:
            self._waiting.clear()
            self._database = database

    def _start(self) -> None:
        self._is_running = True
        if not self._writes_at_exit:
            self._writes_at_exit = True
            at_exit(1, self._last_flush)
        background.start("history", self._run)

    def _run(self) -> None:
        try:
            with own_connections() as own:
                while True:
                    self._alarm.reset()
                    wake_at = self._turn(own)
                    if math.isfinite(wake_at) or not own.are_open:
                        self._alarm.sleep_until(wake_at)
                    else:
                        self._alarm.sleep_until(monotonic() + IDLE)
                        if not self._waiting:
                            with own.turn:
                                own.close()
        finally:
            self._is_running = False

    def _turn(self, own: background.OwnConnections) -> float:
        """Write what waits, if its time has come; return when to look again."""
        if self._due_at > monotonic():
            return self._due_at
        try:
            with own.turn:
                self.flush()
        except FAILURES as error:
            logger.warning("%d events wait to be written: %s", len(self._waiting), error)
            return monotonic() + PAUSE_AFTER_FAILURE
        return self._due_at

    @property
    def _due_at(self) -> float:
        """When to write: as soon as there is a batch, and soon after the first event in any case."""
        if len(self._waiting) >= BATCH:
            return 0.0
        try:
            return self._waiting[0].at + EVERY
        except IndexError:
            return math.inf

    def _last_flush(self) -> None:
        if not self._waiting:
            return
        with own_connections():
            try:
                self.flush()
            except FAILURES as error:
                logger.warning("%d events were not written: %s", len(self._waiting), error)


def write(facts: list[Fact]) -> None:
    """Add these facts to the history; raises DatabaseUnavailable."""
    using = router.db_for_write(Event)
    retrying(connections[using], partial(_write, facts, using))


def _write(facts: list[Fact], using: str) -> None:
    now = monotonic()
    lasted = held(facts, now, using)
    events = [_event(fact, now, lasted.get(grant(fact))) for fact in facts]
    Event.objects.using(using).bulk_create(events, batch_size=BATCH)


def _database() -> Any:
    """Return the name of the database in which the history is."""
    return connections.settings[router.db_for_write(Event)].get("NAME")


def listen() -> None:
    """Connect the history of this process to the signals."""
    for signal in set(SIGNALS.values()):
        signal.connect(_note, dispatch_uid="resourcepool.history")


def _note(sender: Any, fact: Fact, **_: Any) -> None:
    recorder.note(sender, fact)


def _event(fact: Fact, now: float, lasted: float | None) -> Event:
    return Event(
        at=DbLater(fact.at - now),
        what=fact.what,
        pool=fact.model._meta.label_lower,
        row=str(fact.pk)[:MAX_ROW],
        fence=fact.fence,
        holder=fact.holder[:MAX_TEXT],
        actor=fact.actor[:MAX_ACTOR],
        reason=fact.reason[:MAX_TEXT],
        seconds=lasted if fact.what is What.REVOKED else fact.seconds,
        host=_host,
        pid=os.getpid(),
    )


def _after_fork() -> None:
    recorder.__init__()  # type: ignore[misc]  # what the parent has still to write is not the child's


recorder = Recorder()
os.register_at_fork(after_in_child=_after_fork)

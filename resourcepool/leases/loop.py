"""A background thread that takes its turns at one database.

Each database has its own: one that stands still must not keep the leases and the waiters of another one waiting.
"""

import logging
import threading
from collections.abc import Callable

from resourcepool.leases import background
from resourcepool.leases.alarm import Alarm
from resourcepool.leases.background import own_connections
from resourcepool.leases.clock import monotonic

PAUSE_AFTER_FAILURE = 0.2  # seconds

logger = logging.getLogger(__name__)


class Loop:
    """Takes a turn when its alarm rings or its time has come; has no connection while there is nothing to do.

    Attributes:
        alarm: wakes it.
        is_running: whether its thread has begun and not ended; cheaper than asking the thread.
        rests_after: for so many seconds without anything to do it keeps its connection.
    """

    def __init__(
        self,
        name: str,
        alarm: Alarm,
        turn: Callable[[], float],
        has_work: Callable[[], bool],
        *,
        rests_after: float,
    ) -> None:
        """Prepare it; ``start`` begins.

        Args:
            name: of its thread.
            alarm: wakes it.
            turn: does what is due, and returns when to look again (see ``clock.monotonic``; infinity: when it is rung).
            has_work: whether there is something to do, now or later.
        """
        self.alarm = alarm
        self.is_running = False
        self.rests_after = rests_after
        self._name, self._turn, self._has_work = name, turn, has_work
        self._thread: threading.Thread | None = None

    @property
    def is_alive(self) -> bool:
        """Whether its thread runs, or was never needed."""
        return self._thread is None or self._thread.is_alive()

    def start(self) -> None:
        """Start its thread unless that runs; the caller sees to it that nobody else does so just now.

        Raises:
            RuntimeError: there can be no more threads.
        """
        if self.is_running:
            return
        self.is_running = True
        try:
            self._thread = background.start(self._name, self._run)
        except BaseException:
            self.is_running = False
            raise

    def _run(self) -> None:
        try:
            with own_connections() as own:
                while True:
                    self.alarm.reset()
                    try:
                        with own.turn:
                            wake_at = self._turn()
                    except Exception:
                        logger.exception("resourcepool-%s failed; it tries again", self._name)
                        wake_at = monotonic() + PAUSE_AFTER_FAILURE
                    if self._has_work() or not own.are_open:
                        self.alarm.sleep_until(wake_at)
                        continue
                    self.alarm.sleep_until(min(wake_at, monotonic() + self.rests_after))
                    if not self._has_work():
                        with own.turn:
                            own.close()
        finally:
            self.is_running = False

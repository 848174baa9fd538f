"""A background thread that works on one database.

Each database has its own, so that a hanging one does not delay the leases and the waiters of another.
"""

import logging
from collections.abc import Callable

from resourcepool.clock import monotonic
from resourcepool.db.background import own_connections
from resourcepool.db.threads.daemon import Daemon
from resourcepool.db.threads.wakeup import Wakeup

PAUSE_AFTER_FAILURE = 0.2  # seconds

logger = logging.getLogger(__name__)


class Loop:
    """Calls ``turn`` when it is woken or due; closes its connection while there is nothing to do.

    Attributes:
        wakeup: wakes it.
        idle_timeout: seconds after which an idle connection is closed.
        thread: the thread that calls ``turn``.
    """

    def __init__(
        self,
        name: str,
        wakeup: Wakeup,
        turn: Callable[[], float],
        has_work: Callable[[], bool],
        *,
        idle_timeout: float,
    ) -> None:
        """Prepare it; ``start`` begins.

        Args:
            name: of its thread.
            wakeup: wakes it.
            turn: does the work that is due, and returns when to run again (``clock.monotonic``; infinity: when woken).
            has_work: whether there is something to do, now or later.
        """
        self.wakeup = wakeup
        self.idle_timeout = idle_timeout
        self._name, self._turn, self._has_work = name, turn, has_work
        self.thread = Daemon(name, self._run)

    @property
    def is_alive(self) -> bool:
        """Whether its thread runs, or was never needed."""
        return self.thread.is_healthy

    def start(self) -> None:
        """Start the thread unless it runs.

        Raises:
            RuntimeError: no more threads can be started.
        """
        self.thread.ensure_started()

    def _run(self) -> None:
        with own_connections() as own:
            while True:
                self.wakeup.reset()
                try:
                    with own.turn:
                        wake_at = self._turn()
                except Exception:
                    logger.exception("resourcepool-%s failed; trying again", self._name)
                    wake_at = monotonic() + PAUSE_AFTER_FAILURE
                if self._has_work() or not own.are_open:
                    self.wakeup.sleep_until(wake_at)
                    continue
                self.wakeup.sleep_until(min(wake_at, monotonic() + self.idle_timeout))
                if not self._has_work():
                    with own.turn:
                        own.close()

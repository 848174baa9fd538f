"""A node: a process that handles timers."""

import logging
from collections.abc import Callable, Mapping
from typing import Never

from django.db import connections, router

from resourcepool import hints, options
from resourcepool.conf import setting
from resourcepool.database.retry import retrying
from resourcepool.database.timeouts import statement_timeout
from resourcepool.exceptions import BadOption, ClaimInTransaction, DatabaseUnavailable
from resourcepool.labels import labels_of
from resourcepool.taskqueue.timers.models import Timer
from resourcepool.taskqueue.timers.nodes import Node
from resourcepool.taskqueue.timers.timer_worker import HandOver, TimerDispatcher, TimerWorker
from resourcepool.taskqueue.worker_loop import GRACE, PAUSE_AFTER_FAILURE, Runner, exit_process

logger = logging.getLogger(__name__)

THREADS, MAX_THREADS = 4, 256
LATE_RATE = 100.0  # timers a second
MAX_VERSION = 50


class TimerRunner(Runner):
    """Handles the timers of all topics that this process has handlers for; start several, on several hosts.

        TimerRunner(threads=4).run()

    Any of them begins a timer that is due, one at a time: a timer is handled again only when its handler failed, or
    when its process died or stood still for longer than the topic's ttl; then the first attempt's ``timer.guard()``
    fails.

    Not promised: that a handler which does not use ``guard`` has no effect after its process was taken for dead.

    Sources: document 004, R4.8.
    """

    def __init__(
        self,
        *,
        threads: int = THREADS,
        labels: Mapping[str, str] | None = None,
        version: str | None = None,
        grace: object = GRACE,
        late_rate: object = LATE_RATE,
        by: HandOver | None = None,
        exit_process: Callable[[str], Never] = exit_process,
    ) -> None:
        """Describe it; ``run`` runs it.

        Args:
            threads: how many handlers run at a time.
            labels: of this node, such as {"zone": "eu"}; with the label "canary" only topics that allow it are
                handled. None: RESOURCEPOOL["NODE_LABELS"].
            version: of the code on this node, such as "2.10"; None: RESOURCEPOOL["NODE_VERSION"].
            drain_within: seconds or timedelta for which ``stop`` lets the handlers finish.
            late_rate: how many timers a second it begins of those that are late by more than a minute, so that a
                backlog after an outage does not come all at once.
            by: what hands a timer to another process, which calls ``handed.handle``; None: this process's own threads.
            die: see ``Consumer``.

        Raises:
            BadOption: a value is not allowed.
        """
        self.threads = options.whole("threads", threads, least=1, most=MAX_THREADS)
        self.labels = node_labels() if labels is None else labels_of(labels)
        self.version = node_version() if version is None else _version("version", version)
        super().__init__(grace, exit_process)
        self._late_rate = options.rate("late_rate", late_rate, least=1.0, most=100_000.0)
        self._by = by

    def look_up(self) -> None:
        """See whether the tables can be read. Raises DatabaseUnavailable, NotMigrated."""
        using = router.db_for_write(Timer)
        with statement_timeout():
            retrying(connections[using], Timer.objects.using(using).exists)

    def run(self) -> None:
        """Handle timers until ``stop``.

        Raises:
            ClaimInTransaction: a transaction is open.
        """
        using = router.db_for_write(Timer)
        refuse_transaction(using)
        hints.listen(self._wakeup.wake)
        node = Node(using, self.labels, self.version)
        while not self._is_stopping:
            told = (using, node, self.threads, self._late_rate, self._wakeup)
            batches = TimerWorker(*told) if self._by is None else TimerDispatcher(*told, self._by)
            try:
                self._serve("timers", batches)
            except DatabaseUnavailable as error:  # at its start
                logger.warning("timers: %s", error)
                self._pause(PAUSE_AFTER_FAILURE)


def refuse_transaction(using: str) -> None:
    if connections[using].in_atomic_block:
        raise ClaimInTransaction(f"timers are handled outside a transaction; one is open on {using!r}")


def node_labels() -> dict[str, str]:
    try:
        return labels_of(setting("NODE_LABELS"))
    except BadOption as error:
        raise error.of("RESOURCEPOOL['NODE_LABELS']") from None


def node_version() -> str:
    return _version("RESOURCEPOOL['NODE_VERSION']", setting("NODE_VERSION"))


def _version(option: str, value: object) -> str:
    return "" if value == "" else options.text(option, value, most=MAX_VERSION)

"""A node: a process that handles timers."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Never

from django.core.exceptions import ValidationError
from django.db import connections, router

from resourcepool import hints, options
from resourcepool.conf import setting
from resourcepool.db.retry import retrying
from resourcepool.db.timeouts import statement_timeout
from resourcepool.exceptions import BadOption, ClaimInTransaction, DatabaseUnavailable
from resourcepool.labels import labels_of
from resourcepool.options import Seconds
from resourcepool.taskqueue.timers.claims import AttemptEnd
from resourcepool.taskqueue.timers.models import Timer
from resourcepool.taskqueue.timers.nodes import Node
from resourcepool.taskqueue.timers.rules import check_version
from resourcepool.taskqueue.timers.running_timer import RunningTimer
from resourcepool.taskqueue.timers.timer_worker import HandOver, TimerDispatcher, TimerWorker
from resourcepool.taskqueue.worker_loop import GRACE, Runner, Worker, exit_process

THREADS, MAX_THREADS = 4, 256
LATE_RATE = 100.0  # timers per second
MAX_VERSION = 50


class TimerRunner(Runner):
    """Handles the timers of all topics for which this process has handlers; start several, on several hosts.

        TimerRunner(threads=4).run()

    One of them begins each due timer. A timer is handled again only if its handler failed, or if its process crashed or
    was suspended for longer than the topic's ttl; ``timer.guard()`` of the first attempt fails then.

    Not promised: a handler that does not use ``guard`` may still have effects after its lease has expired.
    """

    def __init__(
        self,
        *,
        threads: int = THREADS,
        labels: Mapping[str, str] | None = None,
        version: str | None = None,
        grace: Seconds = GRACE,
        late_rate: float = LATE_RATE,
        by: HandOver | None = None,
        exit_process: Callable[[str], Never] = exit_process,
    ) -> None:
        """Create the runner; ``run`` starts it.

        Args:
            threads: how many handlers run at a time.
            labels: the labels of this node, such as {"zone": "eu"}; a node with the label "canary" handles only topics
                that allow it. None: RESOURCEPOOL["NODE_LABELS"].
            version: the version of the code on this node, such as "2.10"; None: RESOURCEPOOL["NODE_VERSION"].
            grace: seconds or timedelta that running handlers get after ``stop``.
            late_rate: timers per second to begin that are late by more than a minute; it spreads the backlog after an
                outage.
            by: hands timers over to other processes, which call ``handover.handle``; None: handle them in threads of
                this process.
            exit_process: see ``Consumer``.

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
        """Check that the tables can be read. Raises DatabaseUnavailable, NotMigrated."""
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
        worker: Worker[RunningTimer, AttemptEnd]
        if self._by is None:
            worker = TimerWorker(using, node, self.threads, self._late_rate, self._wakeup)
        else:
            worker = TimerDispatcher(using, node, self._late_rate, self._wakeup, self._by)
        try:
            self._serve("timers", worker)
        finally:
            with contextlib.suppress(DatabaseUnavailable), statement_timeout():
                node.leave()


def refuse_transaction(using: str) -> None:
    if connections[using].in_atomic_block:
        raise ClaimInTransaction(
            f"timers are handled outside transactions, but a transaction is open on {using!r}"
        )


def node_labels() -> dict[str, str]:
    try:
        return labels_of(setting("NODE_LABELS"))
    except BadOption as error:
        raise error.of("RESOURCEPOOL['NODE_LABELS']") from None


def node_version() -> str:
    return _version("RESOURCEPOOL['NODE_VERSION']", setting("NODE_VERSION"))


def _version(option: str, value: object) -> str:
    version = "" if value == "" else options.text(option, value, most=MAX_VERSION)
    try:
        if version:
            check_version(version)
    except ValidationError as error:
        raise BadOption(option, value, because=" ".join(error.messages)) from None
    return version

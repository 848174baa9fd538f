"""The consumer of a stream: it campaigns for the lead, and runs the tasks in order while it leads."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Never

from django.db import connections, router
from django.utils import translation

from resourcepool import hints, options
from resourcepool.db.retry import retrying
from resourcepool.db.timeouts import statement_timeout
from resourcepool.elections.election import Election, Term
from resourcepool.exceptions import AcquireTimeout, BadOption, DatabaseUnavailable, LeaseLost
from resourcepool.options import Seconds
from resourcepool.taskqueue.abstract import existing_names
from resourcepool.taskqueue.models import MAX_KEY, SETTINGS, Stream
from resourcepool.taskqueue.stream_worker import StreamWorker
from resourcepool.taskqueue.worker_loop import GRACE, PAUSE_AFTER_FAILURE, Runner, exit_process

logger = logging.getLogger(__name__)

SETTINGS_CHECK_EVERY = 2.5  # seconds, while settings are invalid


class Consumer(Runner):
    """Runs the tasks of one stream, in one process at a time; the other processes are standbys.

        Consumer("oracle").run()

    The transactions that begin and end tasks also check that this process still leads. So no task is lost, and the
    tasks of a lane run in order. A task runs again only if its consumer crashed, or was suspended for longer than its
    term; ``task.guard()`` of the first attempt fails then.

    Not promised: a handler that does not use ``guard`` may still have effects after its process has lost the lead.
    """

    def __init__(
        self, stream: str, *, grace: Seconds = GRACE, exit_process: Callable[[str], Never] = exit_process
    ) -> None:
        """Create the consumer; ``run`` starts it.

        Args:
            stream: the name of an existing stream.
            grace: seconds or timedelta that running handlers get after ``stop``.
            exit_process: ends the process; called with a reason when a handler must end and cannot be stopped: it
                exceeded its ``max_runtime``, or the grace period after ``stop``, or the lead was lost, or the
                consumer itself has failed.

        Raises:
            BadOption: a value is not allowed.
        """
        self.stream = options.text("stream", stream, most=MAX_KEY)
        super().__init__(grace, exit_process)
        self._wrong = ""
        self.term: Term | None = None  # while this consumer leads

    def run(self) -> None:
        """Campaign and lead, again and again, until ``stop``.

        Raises:
            BadOption: there is no such stream.
            ClaimInTransaction: a transaction is open.
            DatabaseUnavailable: the database cannot be reached at the start. Later outages are waited for.
        """
        row = self.look_up()
        settings = ", ".join(f"{name}={getattr(row, name)}" for name in (*SETTINGS, "is_paused"))
        logger.info("stream %s: %s", row, settings)
        hints.listen(self._wakeup.wake)
        while not self._is_stopping:
            try:
                self._serve_one_term()
            except (LeaseLost, DatabaseUnavailable) as error:
                logger.warning("stream %s: %s", self.stream, error)
                self._pause(PAUSE_AFTER_FAILURE)

    def _serve_one_term(self) -> None:
        row = self.look_up()
        if not self._may_serve(row):
            return
        terms = {"ttl": row.term_ttl, "lock_delay": row.lock_delay}
        election = Election(self.stream, Stream, **terms, on_lost=lambda _: self._wakeup.wake())
        try:
            term = election.campaign(stop=lambda: self._is_stopping)
        except AcquireTimeout:
            return  # stopping
        try:
            with term:
                mine = Stream.objects.using(term.using).filter(pk=self.stream, fence=term.fence)
                with statement_timeout():
                    retrying(connections[term.using], partial(mine.update, address=hints.address()))
                self.term = term
                logger.info("stream %s: leading, term %d", row, term.fence)
                worker = StreamWorker(self.stream, term, self._wakeup)
                with statement_timeout():
                    worker.take_over()
                self._serve(f"stream {self.stream}", worker)
        finally:
            self.term = None

    def _may_serve(self, row: Stream) -> bool:
        """Return whether the settings are valid; if not, log that once, and pause."""
        with translation.override("en"):
            wrong = row.wrong_settings()
        if wrong and wrong != self._wrong:
            logger.error("stream %s: nothing runs until these settings are corrected: %s", self.stream, wrong)
        self._wrong = wrong
        if wrong:
            self._pause(SETTINGS_CHECK_EVERY)
        return not wrong

    def look_up(self) -> Stream:
        """Return the row of the stream. Raises BadOption if there is none, DatabaseUnavailable."""
        using = router.db_for_write(Stream)
        streams = Stream.objects.using(using)
        with statement_timeout():
            row: Stream | None = retrying(connections[using], streams.filter(pk=self.stream).first)
        if row is None:
            raise BadOption("stream", self.stream, existing_names(Stream, using))
        return row

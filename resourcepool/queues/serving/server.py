"""A process that works on queues, from registering to leaving."""

import logging
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Self

from django.db import connections, router

from resourcepool import options
from resourcepool.clock import monotonic
from resourcepool.db.background import own_connections
from resourcepool.db.retry import retrying
from resourcepool.db.threads import Daemon, Wakeup
from resourcepool.db.timeouts import statement_timeout
from resourcepool.exceptions import (
    BadOption,
    DatabaseUnavailable,
    LeaseFromAnotherProcess,
    LeaseLost,
    LeaseReleased,
)
from resourcepool.options import labels_of
from resourcepool.queues.models import MAX_NAME, MAX_WEIGHT, QueueGroup
from resourcepool.queues.queries import find_queue_group
from resourcepool.queues.serving.held_queue import HeldQueue, WorkSlot, refuse_event_loop
from resourcepool.queues.serving.membership import LEAVE_TIMEOUT, Membership
from resourcepool.queues.serving.registration import ServerConfig
from resourcepool.queues.serving.snapshot import seconds_until_dead
from resourcepool.text import host_name, join_names

logger = logging.getLogger(__name__)

PAUSE_AFTER_FAILURE = 0.5  # seconds
STOP_POLL = 0.2  # seconds after which a waiting loop notices ``stop``
MAX_LIMIT = 1_000_000


class QueueServer:
    """This process as a queue server: it gets its share of the queues of a queue group.

    Example::

        with QueueServer("orders") as server:
            server.stop_on_signals()
            while not server.stopping:
                for queue in server.queues():
                    if not process(queue.queue_id, queue.parameter):  # nothing to do
                        queue.skip_for(1)

    A background thread checks for changes with every heartbeat, plans when a server has joined, left or crashed, and
    hands over queues that other servers have requested, unless work on them is in hand. A server that was presumed dead
    (its process was stopped, or had lost the database) registers again automatically.

    Not promised: that work without checks stops when its queue was taken over; see ``HeldQueue``.
    """

    def __init__(
        self,
        queue_group: str,
        *,
        name: str | None = None,
        weight: int = 1,
        labels: Mapping[str, str] | None = None,
        limit: int | None = None,
    ) -> None:
        """Describe the server; ``start`` registers it.

        Args:
            queue_group: the name of the queue group whose queues it works on.
            name: for people and pins; None: the host's name. Several servers may share a name.
            weight: its share of the queues relative to the other servers, 1 to 1000.
            labels: e.g. {"zone": "eu"}; queues may require them.
            limit: maximum number of its queues; None: unlimited.

        Raises:
            BadOption: an argument is not allowed.
        """
        self.queue_group = options.text("queue_group", queue_group, most=MAX_NAME)
        self._config = ServerConfig(
            options.text("name", host_name() if name is None else name, most=MAX_NAME),
            options.whole("weight", weight, least=1, most=MAX_WEIGHT),
            labels_of(labels),
            None if limit is None else options.whole("limit", limit, least=1, most=MAX_LIMIT),
        )
        self._using, self._pid = router.db_for_write(QueueGroup), os.getpid()
        self._membership: Membership | None = None
        self._wakeup = Wakeup()
        self._is_stopping = self._is_over = False
        self._latest = 0  # key of the queue that was yielded last, in any thread; a pass begins after it
        self._thread = Daemon("queues", self._watch)

    @property
    def name(self) -> str:
        """Its name and, once registered, its number, which changes when it registers again: "web-3 #17"."""
        return self._config.name if self._membership is None else str(self._membership)

    @property
    def stopping(self) -> bool:
        """Whether ``stop`` was called, so that no more work should begin."""
        return self._is_stopping

    @property
    def is_registered(self) -> bool:
        """Whether it is registered, as far as this process knows. No I/O."""
        return self._membership is not None and self._membership.lease.is_held

    @property
    def held(self) -> list[HeldQueue]:
        """The queues that it has now. No I/O. Use ``queues`` for loops."""
        return [queue for queue in self._known.held if queue.is_held]

    def start(self) -> Self:
        """Register, and keep the server alive in the background.

        Raises:
            BadOption: the queue group does not exist (the error lists the existing ones) or has no queues, this server
                has been closed, or this thread runs an event loop (asyncio).
            ClaimInTransaction, DatabaseUnavailable, NotMigrated: it is not registered.
        """
        refuse_event_loop()
        if self._is_over:
            raise BadOption("server", self.name, "a new QueueServer, as this server has been closed")
        if self._membership is None:
            self._register(self._config)
            try:
                self._thread.ensure_started()
            except BaseException as error:
                # After an interruption the thread may be running: this ends it.
                self._is_over = not isinstance(error, RuntimeError)
                self._leave()
                raise
        return self

    def queues(self) -> Iterator[HeldQueue]:
        """Yield its queues one after the other; each is in hand, and so not handed over, until the next step.

        It begins after the queue that was yielded last, in any thread. It skips queues that are requested, paused,
        in hand elsewhere in this process, or to be skipped (``HeldQueue.skip_for``). With no queue to yield it waits
        for a change, at most one heartbeat.

        Raises:
            BadOption: this thread runs an event loop (asyncio).
            LeaseFromAnotherProcess: this is a child of the process that registered.
        """
        refuse_event_loop()
        if self._is_over:  # closed by another thread
            return
        membership = self._known
        membership.activity.touch(monotonic(), is_loop=True)
        has_yielded, timeout = False, membership.heartbeat
        for queue in sorted(membership.held, key=lambda queue: (queue.pk <= self._latest, queue.pk)):
            if membership.is_suspended:
                break
            if (skipped_for := queue.skipped_until - monotonic()) > 0:
                timeout = min(timeout, skipped_for)
                continue
            slot = WorkSlot(is_loop=True)
            try:
                if membership.begin(queue, slot):
                    self._latest, has_yielded = queue.pk, True
                    yield queue
            finally:
                membership.finish(queue, slot)
        if not has_yielded:
            self.wait(timeout)

    def wait(self, timeout: float) -> None:
        """Wait until queues are added or lost, or the server is to stop; at most ``timeout`` seconds."""
        refuse_event_loop()
        if self._is_over:  # closed by another thread
            return
        changed, deadline = self._known.changed, monotonic() + timeout
        with changed:
            while not self.stopping and (left := deadline - monotonic()) > 0:
                if changed.wait(min(left, STOP_POLL)):
                    return

    def stop(self) -> None:
        """Make ``stopping`` true, so that loops end. Call it from any thread, or from a signal handler."""
        # No Event, as a signal handler may interrupt the thread that holds its lock.
        self._is_stopping = True
        if (membership := self._membership) is not None:
            membership.is_stopping = True

    def stop_on_signals(self, *numbers: int) -> None:
        """Make signals call ``stop``; in the main thread.

        Args:
            numbers: the signals; default: SIGTERM and SIGINT.
        """
        if (thread := threading.current_thread()) is not threading.main_thread():
            raise BadOption("thread", thread.name, because="call stop_on_signals() in the main thread")
        for number in numbers or (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop())

    def close(self, timeout: float | None = None) -> None:
        """Wait for the work in hand, hand all queues over, and leave.

        Args:
            timeout: seconds to wait for the work in hand; None: the queue group's ``handover_timeout``. Work that
                continues longer loses its queue.
        """
        membership = self._membership
        if membership is None or self._pid != os.getpid():
            return
        self.stop()
        membership.finish_loops()
        try:
            if membership.in_hand:
                self._await_work(membership, timeout)
        finally:
            self._is_over = True
            self._wakeup.wake()
            self._thread.join(LEAVE_TIMEOUT)
            if (left := self._membership) is not None:
                left.lease._stop_renewing()
                logger.warning("server %s did not sign off; the other servers will presume it dead", left)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.queue_group} {self.name}>"

    @property
    def _known(self) -> Membership:
        if self._pid != os.getpid():
            raise LeaseFromAnotherProcess(
                f"{self!r} belongs to process {self._pid}; this is process {os.getpid()}. Start the server"
                " after the fork"
            )
        if self._membership is None:
            allowed = "a started server: call start(), or write: with QueueServer(..) as server: ..."
            raise BadOption("server", self.name, because=allowed)
        return self._membership

    def _register(self, config: ServerConfig, after: Membership | None = None) -> Membership:
        # The database session may have been lost since its last use; only `retrying` replaces it.
        read = partial(find_queue_group, self.queue_group, self._using)
        with statement_timeout():
            queue_group = retrying(connections[self._using], read)
        membership = Membership(self._using, queue_group, config, self._wakeup.bring_forward, after)
        self._membership = membership
        membership.is_stopping = self.stopping  # read last, as ``stop`` may have been called meanwhile
        logger.info("server %s is registered for %s", membership, self.queue_group)
        return membership

    def _watch(self) -> None:
        has_failed = False
        with own_connections() as own:
            while not self._is_over:
                self._wakeup.reset()
                try:
                    with own.turn:
                        wake_at = self._turn()
                    has_failed = False
                except Exception as error:  # noqa: BLE001 (the thread must survive any error)
                    level = logging.DEBUG if has_failed else logging.WARNING
                    logger.log(level, "server %s: %s: %s; retrying", self.name, type(error).__name__, error)
                    has_failed = True
                    wake_at = monotonic() + PAUSE_AFTER_FAILURE
                if not self._is_over:
                    self._wakeup.sleep_until(wake_at)
            # In this thread, whose connections have short timeouts.
            with own.turn:
                self._leave()

    def _turn(self) -> float:
        membership = self._known
        try:
            membership.lease.ensure_held()
        except LeaseReleased:  # by the end of this process
            self._is_over = True
            return monotonic()
        except LeaseLost:
            if self.stopping:  # nothing is left to hand over
                return monotonic() + membership.heartbeat
            # Not while its old row counts as alive, or the others would share with one server too many.
            if seconds := seconds_until_dead(self._using, membership.lease.pk):
                return monotonic() + seconds
            lost, membership = membership, self._register(membership.next_config(), membership)
            logger.warning("server %s was or may have been presumed dead; it continues as %s", lost, membership)
        return membership.turn()

    def _await_work(self, membership: Membership, timeout: float | None) -> None:
        within = membership.queue_group.handover_timeout if timeout is None else timeout
        in_hand = join_names([queue.queue_id for queue in membership.in_hand])
        logger.info("server %s waits up to %g s for the work in hand: %s", membership, within, in_hand)
        self._wakeup.wake()  # queues that are not in hand are handed over at once
        with membership.changed:
            if not membership.changed.wait_for(lambda: not membership.in_hand, within):
                logger.warning("server %s leaves with work in hand, after %g s", membership, within)

    def _leave(self) -> None:
        membership, self._membership = self._membership, None
        if membership is None or membership.lease.is_released:
            return
        try:
            membership.leave()  # also if the lease is lost, as no other server may be left to remove its row
        except (DatabaseUnavailable, QueueGroup.DoesNotExist) as error:
            logger.warning(
                "server %s could not sign off; the other servers will presume it dead: %s", membership, error
            )

"""Sends this process's hints from a background thread."""

import contextlib
import logging
import math
import queue
import threading
from time import monotonic

from resourcepool.db.threads import Daemon
from resourcepool.exceptions import BadOption
from resourcepool.hints import choice
from resourcepool.hints.choice import Outage, Transport

MAX_WAITING_HINTS = 10_000  # addresses; hints to further ones are dropped
# Seconds between two reads of ``max_per_second``: the minimum, because at first many processes begin to listen, then
# doubled up to the maximum.
LIMIT_INTERVAL = (0.5, 30.0)
IDLE = 60.0  # seconds without a hint, after which the session is closed

logger = logging.getLogger(__name__)


class Sender:
    """Queues hints without a lock, so signal handlers may send, too; a thread sends them in batches.

    Drops hints while the service is unavailable: when it is back, their receivers have already polled.
    """

    def __init__(self) -> None:
        self.turn = threading.Lock()  # held during exchanges with the service; a fork waits for it
        self.transport: Transport | None = None  # for ``_choice``; may be closed
        self._choice: choice.Choice | None = None  # the configured service that ``transport`` is a client of
        self._is_open = False
        self._waiting: dict[str, float] = {}  # {address: approximate rate of such hints by all processes}
        self._requests: queue.SimpleQueue[threading.Event | None] = queue.SimpleQueue()
        self._thread = Daemon("hint-sender", self._loop)
        self._outage = Outage("sent", shortest=1.0, longest=30.0)
        self._paused_until = 0.0
        self._max_per_second, self._read_limit_at, self._limit_interval = math.inf, 0.0, LIMIT_INTERVAL[0]

    def send(self, address: str, per_second: float = 0.0) -> None:
        """Queue a hint to ``address``, unless too many wait already or the rate exceeds the service's limit.

        Args:
            per_second: approximate rate of such hints by all processes together.
        """
        if len(self._waiting) >= MAX_WAITING_HINTS:
            return
        if per_second > self._max_per_second and monotonic() < self._read_limit_at:
            return
        self._waiting[address] = min(per_second, self._waiting.get(address, per_second))
        if self._requests.empty():  # otherwise the thread is about to send, including this one
            self._requests.put(None)
        with contextlib.suppress(RuntimeError):  # no more threads: the hint waits for the next attempt
            self._thread.ensure_started()

    def flush(self, seconds: float) -> None:
        """Wait up to ``seconds`` until all queued hints are sent or dropped."""
        if not self._thread.is_alive:
            self._send_waiting()  # in this thread, because the interpreter is about to exit
        else:
            done = threading.Event()
            self._requests.put(done)
            done.wait(seconds)

    def _loop(self) -> None:
        while True:
            try:
                done = self._requests.get(timeout=IDLE if self._is_open else None)
            except queue.Empty:
                self._close()
                continue
            self._send_waiting()
            if done:
                done.set()

    def _send_waiting(self) -> None:
        hints = {address: self._waiting.pop(address, 0.0) for address in list(self._waiting)}
        if not hints or monotonic() < self._paused_until:
            return
        try:
            chosen = choice.configured()
        except BadOption:
            return  # reported by the system check and by ``listen``
        if chosen:
            self._try(chosen, hints)

    def _try(self, chosen: choice.Choice, hints: dict[str, float]) -> None:
        try:
            with self.turn:
                self._deliver(chosen, hints)
        except Exception as error:  # noqa: BLE001 (each client has its own errors)
            self._close()
            self._paused_until = monotonic() + self._outage.failed(chosen, error)
        else:
            self._outage.recovered(chosen)

    def _deliver(self, chosen: choice.Choice, hints: dict[str, float]) -> None:
        if self.transport is None or chosen != self._choice:
            self._close()
            self.transport, self._choice = chosen.open(), chosen
            self._read_limit_at, self._limit_interval = 0.0, LIMIT_INTERVAL[0]
        was_open, self._is_open = self._is_open, True
        try:
            self._send_below_limit(self.transport, hints)
        except Exception:
            if not was_open:
                raise
            self.transport.close()  # the service may have ended an idle session: not an outage
            self._send_below_limit(self.transport, hints)

    def _send_below_limit(self, transport: Transport, hints: dict[str, float]) -> None:
        if (now := monotonic()) >= self._read_limit_at:
            self._max_per_second = transport.max_per_second()
            self._read_limit_at = now + self._limit_interval
            self._limit_interval = min(2 * self._limit_interval, LIMIT_INTERVAL[1])
        if addresses := [
            address for address, per_second in hints.items() if per_second <= self._max_per_second
        ]:
            transport.send(addresses)

    def _close(self) -> None:
        if self.transport:
            self.transport.close()
        self._is_open = False

"""The background threads that send and receive this process's hints."""

import contextlib
import logging
import math
import queue
import random
import threading
from collections.abc import Callable
from time import monotonic

from resourcepool.db.threads import Daemon, SignalSafeEvent
from resourcepool.exceptions import BadOption
from resourcepool.hints import choice
from resourcepool.hints.choice import TIMEOUT, Choice, Transport

MAX_WAITING_HINTS = 10_000  # addresses; hints to further ones are dropped
LIMIT_INTERVAL = 5.0  # seconds between two reads of ``max_per_second``: processes begin and cease to listen
IDLE = 60.0  # seconds without a hint, after which the sender's session is closed
POLL = 1.0  # seconds between two checks of the listener's stop flag
ECHO_AFTER = 15.0  # seconds without a hint, after which the listener requests an echo
LONGEST_PAUSE = 30.0  # seconds between two attempts while the service does not answer

logger = logging.getLogger(__name__)


class _Client:
    """A thread's connection to the configured service, and its consecutive failures.

    Logs only the type of an error: messages of clients may contain the password.

    Attributes:
        turn: held during exchanges with the service; a fork waits for it.
        transport: for ``_choice``; may be closed.
    """

    def __init__(self, action: str, *, shortest_pause: float) -> None:
        self.turn = threading.Lock()
        self.transport: Transport | None = None
        self._choice: Choice | None = None  # the configured service that ``transport`` is a client of
        self._action, self._shortest_pause, self._pause = action, shortest_pause, 0.0

    def _opened(self, chosen: Choice) -> Transport:
        if self.transport is None or chosen != self._choice:
            self.transport, self._choice = chosen.open(), chosen
        return self.transport

    def _failed(self, chosen: Choice, error: Exception) -> float:
        """Note a failure; return the seconds to pause: exponential back-off with jitter."""
        if not self._pause:
            why = str(error) if isinstance(error, BadOption) else type(error).__name__
            text = "hints cannot be %s by %s: %s; falling back to polling"
            logger.warning(text, self._action, chosen.redacted, why)
        self._pause = min(max(self._shortest_pause, 2 * self._pause), LONGEST_PAUSE)
        # Jitter: processes must not all reconnect at the same moment.
        return self._pause * random.uniform(0.5, 1)  # noqa: S311 (jitter)

    def _recovered(self, chosen: Choice) -> None:
        if self._pause:
            self._pause = 0.0
            logger.info("hints can be %s by %s again", self._action, chosen.redacted)


class Sender(_Client):
    """Queues hints without a lock, so signal handlers may send, too; a thread sends them in batches.

    Drops hints while the service is unavailable: when it is back, their receivers have already polled.
    """

    def __init__(self) -> None:
        super().__init__("sent", shortest_pause=1.0)
        self._is_open = False
        self._waiting: dict[str, float] = {}  # {address: approximate rate of such hints by all processes}
        self._requests: queue.SimpleQueue[threading.Event | None] = queue.SimpleQueue()
        self._thread = Daemon("hint-sender", self._loop)
        self._paused_until = 0.0
        self._max_per_second, self._read_limit_at = math.inf, 0.0

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

    def _try(self, chosen: Choice, hints: dict[str, float]) -> None:
        try:
            with self.turn:
                self._deliver(chosen, hints)
        except Exception as error:  # noqa: BLE001 (each client has its own errors)
            self._close()
            self._paused_until = monotonic() + self._failed(chosen, error)
        else:
            self._recovered(chosen)

    def _deliver(self, chosen: Choice, hints: dict[str, float]) -> None:
        if chosen != self._choice:
            self._close()
            self._read_limit_at = 0.0
        transport = self._opened(chosen)
        was_open, self._is_open = self._is_open, True
        try:
            self._send_below_limit(transport, hints)
        except Exception:
            if not was_open:
                raise
            transport.close()  # the service may have ended an idle session: not an outage
            self._send_below_limit(transport, hints)

    def _send_below_limit(self, transport: Transport, hints: dict[str, float]) -> None:
        if (now := monotonic()) >= self._read_limit_at:
            self._max_per_second = transport.max_per_second()
            self._read_limit_at = now + LIMIT_INTERVAL
        addresses = [address for address, rate in hints.items() if rate <= self._max_per_second]
        if addresses:
            transport.send(addresses)

    def _close(self) -> None:
        if self.transport:
            self.transport.close()
        self._is_open = False


class EchoMissing(Exception):
    """The service accepted the subscription, but no echo came back: network failure, or a pooler in between."""


class Listener(_Client):
    """Calls the registered callbacks for each hint, each echo, and after each new connection."""

    def __init__(self, address: str) -> None:
        super().__init__("received", shortest_pause=0.2)
        self._address = address
        self._wakes: dict[Callable[[], object], None] = {}
        self._is_stopping, self._rest = False, SignalSafeEvent()
        self._thread = Daemon("hint-listener", self._loop)

    def listen(self, wake: Callable[[], object]) -> None:
        """Register the callback ``wake``; raises BadOption for a service that this process cannot use."""
        self._wakes[wake] = None
        if not self._thread.is_running and (chosen := choice.configured()):
            chosen.check_usable()
            self._is_stopping = False
            self._thread.ensure_started()

    def stop(self) -> None:
        """Stop the thread and close its session; waits for that, about a second."""
        self._is_stopping = True
        self._rest.wake()
        self._thread.join(POLL + 2 * TIMEOUT)

    def _loop(self) -> None:
        while chosen := self._chosen():
            pause = 0.0
            try:
                self._receive(self._opened(chosen), chosen)
            except Exception as error:  # noqa: BLE001 (each client has its own errors)
                pause = self._failed(chosen, error)
            if self.transport:
                self.transport.close()
            self._rest.wait(pause)

    def _receive(self, transport: Transport, chosen: Choice) -> None:
        with self.turn:
            transport.subscribe(self._address)
        self._wake()  # hints may have been lost until now
        received_at, awaits_echo = monotonic() - ECHO_AFTER, False  # request the first echo at once
        while self._chosen() == chosen:
            if not awaits_echo and monotonic() - received_at >= ECHO_AFTER:
                transport.echo()
                received_at, awaits_echo = monotonic(), True
            if transport.receive(POLL):
                received_at, awaits_echo = monotonic(), False
                self._recovered(chosen)
                self._wake()
            elif awaits_echo and monotonic() - received_at >= ECHO_AFTER:
                raise EchoMissing

    def _chosen(self) -> Choice | None:
        try:
            return None if self._is_stopping else choice.configured()
        except BadOption:
            return None  # only in tests: the settings were valid when the thread started

    def _wake(self) -> None:
        for wake in tuple(self._wakes):
            try:
                wake()
            except Exception:
                logger.exception("error in a hint callback")

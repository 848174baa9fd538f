"""Sends this process's hints, from a thread of its own."""

import contextlib
import logging
import math
import queue
import threading
from time import monotonic

from resourcepool.exceptions import BadOption
from resourcepool.hints import choice
from resourcepool.hints.outage import Outage
from resourcepool.hints.transport import Transport
from resourcepool.threads.daemon import Daemon

MAX_WAITING_HINTS = 10_000  # addresses that wait to be sent to; further ones get no hint
ASK_AGAIN = (0.5, 30.0)  # seconds after which the service is asked again how many hints are worth their cost:
# soon at first, because others begin to listen at the same time; then twice as long each time
IDLE = 60.0  # seconds without a hint, after which the session is closed

logger = logging.getLogger(__name__)


class Sender:
    """Takes hints without a lock, and so from signal handlers, too; sends all that wait in one go.

    While the service is away they are dropped: by the time it is back, their receivers have looked by themselves.
    """

    def __init__(self) -> None:
        self.turn = threading.Lock()  # held while talking to the service: a fork waits for it
        self.transport: Transport | None = None  # of the last choice, and perhaps closed
        self._choice: choice.Choice | None = None
        self._is_open = False
        self._waiting: dict[str, float] = {}  # {address: how many hints like this are sent each second}
        self._rings: queue.SimpleQueue[threading.Event | None] = queue.SimpleQueue()
        self._thread = Daemon("hint-sender", self._loop)
        self._outage = Outage("sent", shortest=1.0, longest=30.0)
        self._paused_until = 0.0
        self._max_per_second, self._ask_again_at, self._ask_after = math.inf, 0.0, ASK_AGAIN[0]

    def send(self, address: str, per_second: float = 0.0) -> None:
        """Have a hint sent to ``address``, unless too many wait already, or so many are not worth their cost.

        Args:
            per_second: how many hints of this kind all processes send together, about.
        """
        if len(self._waiting) >= MAX_WAITING_HINTS:
            return
        if per_second > self._max_per_second and monotonic() < self._ask_again_at:
            return
        self._waiting[address] = min(per_second, self._waiting.get(address, per_second))
        if self._rings.empty():  # else the thread has yet to look, and will find this one
            self._rings.put(None)
        with contextlib.suppress(RuntimeError):  # no more threads: the hint waits for the next try
            self._thread.ensure_started()

    def flush(self, seconds: float) -> None:
        """Wait ``seconds`` at most until what waits now is sent or dropped."""
        if not self._thread.is_alive:
            self._send_waiting()  # without a thread, because the interpreter is about to end
        else:
            done = threading.Event()
            self._rings.put(done)
            done.wait(seconds)

    def _loop(self) -> None:
        while True:
            try:
                done = self._rings.get(timeout=IDLE if self._is_open else None)
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
            return  # the system check says so, and whoever listens
        if chosen:
            self._try(chosen, hints)

    def _try(self, chosen: choice.Choice, hints: dict[str, float]) -> None:
        try:
            with self.turn:
                self._deliver(chosen, hints)
        except Exception as error:  # noqa: BLE001 (each client has its own)
            self._close()
            self._paused_until = monotonic() + self._outage.failed(chosen, error)
        else:
            self._outage.recovered(chosen)

    def _deliver(self, chosen: choice.Choice, hints: dict[str, float]) -> None:
        if self.transport is None or chosen != self._choice:
            self._close()
            self.transport, self._choice = chosen.open(), chosen
            self._ask_again_at, self._ask_after = 0.0, ASK_AGAIN[0]
        was_open, self._is_open = self._is_open, True
        try:
            self._send_worthwhile(self.transport, hints)
        except Exception:
            if not was_open:
                raise
            self.transport.close()  # the service may have ended the session meanwhile, which is no outage
            self._send_worthwhile(self.transport, hints)

    def _send_worthwhile(self, transport: Transport, hints: dict[str, float]) -> None:
        if (now := monotonic()) >= self._ask_again_at:
            self._max_per_second = transport.max_per_second()
            self._ask_again_at, self._ask_after = now + self._ask_after, min(2 * self._ask_after, ASK_AGAIN[1])
        if addresses := [
            address for address, per_second in hints.items() if per_second <= self._max_per_second
        ]:
            transport.send(addresses)

    def _close(self) -> None:
        if self.transport:
            self.transport.close()
        self._is_open = False

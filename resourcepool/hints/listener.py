"""Receives this process's hints in a background thread."""

import logging
import threading
from collections.abc import Callable
from time import monotonic

from resourcepool.db.threads import Daemon, SignalSafeEvent
from resourcepool.exceptions import BadOption
from resourcepool.hints import choice
from resourcepool.hints.choice import TIMEOUT, Outage, Transport

POLL = 1.0  # seconds between two checks of the stop flag
ECHO_AFTER = 15.0  # seconds without a hint, after which the listener requests an echo

logger = logging.getLogger(__name__)


class EchoMissing(Exception):
    """The service accepted the subscription, but no echo came back: network failure, or a pooler in between."""


class Listener:
    """Calls the registered callbacks for each hint, each echo, and after each new connection."""

    def __init__(self, address: str) -> None:
        self.turn = threading.Lock()  # held during exchanges with the service; a fork waits for it
        self.transport: Transport | None = None  # for ``_choice``; may be closed
        self._choice: choice.Choice | None = None
        self._address = address
        self._wakes: dict[Callable[[], object], None] = {}
        self._is_stopping, self._rest = False, SignalSafeEvent()
        self._thread = Daemon("hint-listener", self._loop)
        self._outage = Outage("received", shortest=0.2, longest=30.0)

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
                pause = self._outage.failed(chosen, error)
            if self.transport:
                self.transport.close()
            self._rest.wait(pause)

    def _opened(self, chosen: choice.Choice) -> Transport:
        if self.transport is None or chosen != self._choice:
            self.transport, self._choice = chosen.open(), chosen
        return self.transport

    def _receive(self, transport: Transport, chosen: choice.Choice) -> None:
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
                self._outage.recovered(chosen)
                self._wake()
            elif awaits_echo and monotonic() - received_at >= ECHO_AFTER:
                raise EchoMissing

    def _chosen(self) -> choice.Choice | None:
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

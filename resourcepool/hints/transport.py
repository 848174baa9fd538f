"""The interface of a service that carries hints."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

TIMEOUT = 1.0  # seconds for connecting and for each reply, where the client supports it


class Transport(ABC):
    """A connection of one thread to a service. Connects on first use; methods raise the errors of the client.

    After an error, ``close`` is called, and the next use connects again.
    """

    @abstractmethod
    def send(self, addresses: Sequence[str]) -> None:
        """Send a hint to each of these addresses, in one batch if possible, whether or not a process listens."""

    def max_per_second(self) -> float:
        """Return the rate, of all processes together, above which hints cost more than they save."""
        return math.inf

    @abstractmethod
    def subscribe(self, address: str) -> None:
        """Subscribe; returns when every later hint to ``address`` will reach ``receive``."""

    @abstractmethod
    def receive(self, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds; return whether a hint or an echo arrived."""

    @abstractmethod
    def echo(self) -> None:
        """Request an echo, to detect a subscription that no longer delivers."""

    @abstractmethod
    def close(self) -> None:
        """End the session, whatever its state."""

    def abandon(self) -> None:  # noqa: B027 (most clients detect a fork themselves)
        """In a forked child: drop the parent's session without sending anything to the service."""

"""What a service that carries hints has to do."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

TIMEOUT = 1.0  # seconds for connecting and for every answer, where the client can limit them


class Transport(ABC):
    """One thread's own way to a service. It connects when used; each method raises what its client raises.

    After an error, ``close`` is called, and the next use connects anew.
    """

    @abstractmethod
    def send(self, addresses: Sequence[str]) -> None:
        """Send a hint to each of these addresses, in one go if possible. Nobody need be listening."""

    def max_per_second(self) -> float:
        """Return how many hints a second, from all processes together, cost less than they save."""
        return math.inf

    @abstractmethod
    def subscribe(self, address: str) -> None:
        """Return once every hint sent to ``address`` from now on will reach ``receive``."""

    @abstractmethod
    def receive(self, timeout: float) -> bool:
        """Wait ``timeout`` seconds at most; return whether something came, a hint or an echo."""

    @abstractmethod
    def echo(self) -> None:
        """Ask for something to be received; what is subscribed but never answers is cut off."""

    @abstractmethod
    def close(self) -> None:
        """End the session, whatever state it is in."""

    def abandon(self) -> None:  # noqa: B027 (most clients notice by themselves that they were forked)
        """In a forked child: let go of the parent's session without a word to the service."""

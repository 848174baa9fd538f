"""The receiving end of hints, in tests."""

import queue

from resourcepool.hints.threads import Listener

LONG = 20.0  # seconds: longer than any hint takes


class End:
    """A listener at ``address`` that counts how often it was woken."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.listener = Listener(address)
        self.wakes: queue.SimpleQueue[None] = queue.SimpleQueue()

    def connected(self) -> "End":
        """Listen; return after the wake-ups for the connection and the first echo."""
        self.listener.listen(self.wake)
        self.woken()
        self.woken()
        return self

    def wake(self) -> None:
        self.wakes.put(None)

    def woken(self) -> None:
        """Wait for a wake-up; raises queue.Empty."""
        self.wakes.get(timeout=LONG)

    def forget(self) -> None:
        """Start counting again."""
        while not self.wakes.empty():
            self.wakes.get()

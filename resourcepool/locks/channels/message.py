"""A message, as a subscriber gets it."""

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from resourcepool.exceptions import LeaseLost
from resourcepool.threads.async_threads import for_asyncio


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        number: its place in the channel: 1, 2, 3, ..
        payload: what was published.
        published_at: when, by the database's clock.
        publisher: who, for people to read: host/pid/thread/number.
    """

    number: int
    payload: Any
    published_at: Any
    publisher: str
    # Weak: a message that a traceback still refers to would keep the subscription from others.
    _note_done: "weakref.WeakMethod[Callable[[int, int], None]]" = field(repr=False, compare=False)
    _turn: int = field(repr=False, compare=False)  # see ``Position``

    def done(self) -> None:
        """Move the cursor to this message now; a durable one's with the caller's transaction, if one is open.

        So what a handler writes to the same database, and the cursor, are committed together or not at all.

        Raises:
            LeaseLost: another process reads under this name, or has since this message came; the channel was removed;
                or the subscriber was dropped. Nothing was changed.
            LeaseReleased: it is done already, by this transaction or an earlier one, whose commit took effect without
                an answer. Ask for the next message.
            DatabaseUnavailable: it is unknown whether it was stored.
        """
        if (note_done := self._note_done()) is None:
            raise LeaseLost(
                f"message {self.number} is not done: the subscription that it came by was dropped; keep it, by with"
            )
        note_done(self.number, self._turn)

    adone = for_asyncio(done)

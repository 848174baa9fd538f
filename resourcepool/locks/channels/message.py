"""A message as a subscriber gets it."""

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from resourcepool.db.threads.sync_async import for_asyncio
from resourcepool.exceptions import LeaseLost


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        number: its number in the channel: 1, 2, 3, ..
        payload: the published value.
        published_at: time of publication, by the database's clock.
        publisher: host/pid/thread/number, for people.
    """

    number: int
    payload: Any
    published_at: Any
    publisher: str
    # Weak: a message in a traceback must not keep the subscription leased.
    _note_done: "weakref.WeakMethod[Callable[[int, int], None]]" = field(repr=False, compare=False)
    _turn: int = field(repr=False, compare=False)  # see ``Position``

    def done(self) -> None:
        """Move the cursor to this message; of a durable subscription in the caller's transaction, if one is open.

        So the handler's writes to the same database and the cursor are committed together or not at all.

        Raises:
            LeaseLost: another process has read the subscription since this message was delivered, the channel was
                removed, or the subscriber was garbage-collected. Nothing was changed.
            LeaseReleased: it is done already, by this transaction or by an earlier one whose commit succeeded without
                a reply. Continue with the next message.
            DatabaseUnavailable: it is unknown whether the cursor was stored.
        """
        if (note_done := self._note_done()) is None:
            raise LeaseLost(
                f"message {self.number} is not done: its subscriber was garbage-collected; keep a reference, use with"
            )
        note_done(self.number, self._turn)

    adone = for_asyncio(done)

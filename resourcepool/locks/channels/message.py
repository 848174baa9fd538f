"""One message, as its reader gets it."""

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from resourcepool.async_threads import for_asyncio
from resourcepool.exceptions import LeaseLost


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
    # Weak: a message that a traceback still has would keep the name of its subscription from others.
    _note_done: "weakref.WeakMethod[Callable[[int], None]]" = field(repr=False, compare=False)

    def done(self) -> None:
        """Move the cursor to this message now; of a durable one in the caller's transaction, if one is open.

        So what a handler writes to the same database, and that it is done, is committed together or not at all.

        Raises:
            LeaseLost: somebody else reads under this name by now, or nobody has what ``subscribe`` returned any more;
                nothing was changed.
            LeaseReleased: a transaction before this one has it done: its commit got no answer, and was made. Ask for
                the next message.
            DatabaseUnavailable: it is unknown whether it was stored.
        """
        if (note_done := self._note_done()) is None:
            raise LeaseLost(
                f"message {self.number} is not done: the subscription that it came by was dropped; keep it, by with"
            )
        note_done(self.number)

    adone = for_asyncio(done)

"""Which tickets this process has taken: their numbers say who came first."""

import contextlib
from collections.abc import Callable
from typing import Any


class TicketNumbers:
    """Collects the number of every ticket that this process takes from now on; for one thread that acquires."""

    def __init__(self) -> None:
        self._taken: list[Callable[[], int | None]] = []
        with contextlib.suppress(ImportError, AttributeError):  # another checkout may call it otherwise
            from resourcepool.waiting import tickets

            self._watch(tickets)

    def pop(self) -> list[int]:
        """Return at most one number, the lowest taken since the last call, and forget about it.

        Who took a second ticket because the first one lapsed has been waiting since the first.
        """
        numbers = [number for read in self._taken if (number := read()) is not None]
        self._taken.clear()
        return [min(numbers)] if numbers else []

    def _watch(self, tickets: Any) -> None:
        take = tickets.take

        def watched(*args: Any, **named: Any) -> Any:
            taken = take(*args, **named)
            self._taken.append(lambda: int(taken.pk))
            return taken

        tickets.take = watched

"""What befalls the processes of a proof and their database, one thing at a time, until all is done."""

import random
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from django.db import Error, connection

from resourcepool.exceptions import DatabaseUnavailable
from tests.chaos.fleet import lives

if TYPE_CHECKING:
    from tests.chaos.fleet import Fleet

LOOKS, STALL = 0.05, 0.5  # seconds
Fault = Callable[[], object]


class Deck:
    """Has faults happen in random order: each of a deal before any of them again.

    Args:
        deal: returns the faults.
        first: what happens before; a short run has it, too.
    """

    def __init__(self, seed: int, deal: Callable[[], Sequence[Fault]], first: Sequence[Fault] = ()) -> None:
        self._chance, self._deal, self._left = random.Random(f"{seed}/faults"), deal, [*first]

    def next(self) -> None:
        """Have the next one happen."""
        if not self._left:
            self._left = [*self._deal()]
            self._chance.shuffle(self._left)
        self._left.pop()()


def until_done(
    fleets: "Sequence[Fleet]",
    fault: Fault,
    progress: Callable[[], tuple[Any, bool]],
    *,
    every: float,
    patience: float,
) -> None:
    """Have a fault happen every so many seconds, until all is done or nothing changes for ``patience``.

    Args:
        progress: returns what changes, and whether all is done; both it and ``fault`` may find the database away.
    """
    seen, changed_at, next_at = None, time.monotonic(), time.monotonic() + every
    while time.monotonic() < changed_at + patience:
        for fleet in fleets:
            fleet.go_on()
            replace_the_dead(fleet)
        try:
            if time.monotonic() > next_at:
                next_at = time.monotonic() + every
                fault()
            now, is_over = progress()
        except (Error, DatabaseUnavailable):
            connection.close()
        else:
            if is_over:
                return
            if now != seen:
                seen, changed_at = now, time.monotonic()
        looked = time.monotonic()
        time.sleep(LOOKS)
        if time.monotonic() - looked > STALL:  # the machine was busy: places in line may have lapsed
            fleets[0].log.tell("stalled", 0, since=looked)


def replace_the_dead(fleet: "Fleet") -> None:
    """A process ends itself when it has lost the lead, or its timer, in the middle of the work."""
    for member in [member for member in fleet.members if not lives(member.pid)]:
        fleet.log.tell("ended_itself", member.number)
        fleet.members.remove(member)
        fleet.start()

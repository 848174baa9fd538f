"""What this process holds of semaphores: any of its threads may release it."""

import os
import threading
from collections.abc import Callable, Sequence

from resourcepool.async_threads import for_asyncio
from resourcepool.exceptions import NotHeld
from resourcepool.locks.hold import Hold
from resourcepool.locks.owners import Key, current, number_of, owner_in
from resourcepool.locks.permits import PermitLease


class SemaphoreHold(Hold):
    """The permits that one ``acquire`` got; ``is_of_block``: a ``with`` block gives them back."""

    leases: Sequence[PermitLease] = ()
    is_of_block = False

    def __init__(self, which: Key, on_lost: Callable[[Hold], object] | None) -> None:
        super().__init__(which[-1], on_lost)
        self.which = which

    def release(self) -> None:
        """Give these permits back, whichever thread got them.

        Raises:
            NotHeld: they were given back before.
            LeaseLost: one of them was lost before; the others are given back.
            DatabaseUnavailable: they are not renewed any more and expire.
        """
        if not holds.remove(self):
            raise NotHeld(f"{self!r} was released before")
        PermitLease.give_back_together(self.leases)

    arelease = for_asyncio(release)

    def let_go(self) -> None:
        """Never renew them again: those that are not given back expire."""
        for lease in self.leases:
            lease.let_go()
        holds.remove(self)


class ProcessHolds:
    """The holds of this process by name, in the order in which it got them."""

    def __init__(self) -> None:
        self._all: dict[Key, list[SemaphoreHold]] = {}
        self._lock = threading.RLock()  # a signal handler may come in between

    def add(self, hold: SemaphoreHold) -> None:
        """Note what the process has got."""
        with self._lock:
            self._all.setdefault(hold.which, []).append(hold)

    def remove(self, hold: SemaphoreHold) -> bool:
        """Forget it; False: it was released before."""
        with self._lock:
            mine = self._all.get(hold.which, [])
            rest = [one for one in mine if one is not hold]
            if rest:
                self._all[hold.which] = rest
            else:
                self._all.pop(hold.which, None)
            return len(rest) < len(mine)

    def take(self, which: Key, count: int) -> list[PermitLease] | int:
        """Take off ``count`` leases; if there are fewer, return how many.

        First of the caller, then of others, and only then of open ``with`` blocks; of each the latest first.
        """
        me = number_of(current())
        with self._lock:
            mine = self._all.get(which, [])
            if (there_are := sum(len(hold.leases) for hold in mine)) < count:
                return there_are
            taken: list[PermitLease] = []
            latest_first = mine[::-1]
            for hold in sorted(
                latest_first, key=lambda hold: (hold.is_of_block, owner_in(hold.holder)[1] != me)
            ):
                lacking = count - len(taken)
                if not lacking:
                    break
                taken.extend(hold.leases[-lacking:])
                if len(hold.leases) > lacking:
                    hold.leases = hold.leases[:-lacking]
                else:
                    self.remove(hold)
            return taken

    def forget(self) -> None:
        """Forget everything: it is being released."""
        with self._lock:
            self._all.clear()


def _after_fork() -> None:
    holds.__init__()  # type: ignore[misc]  # the parent's


holds = ProcessHolds()
os.register_at_fork(after_in_child=_after_fork)

"""What one thread, or one task of asyncio, holds, and may take again."""

from typing import Any

from resourcepool.exceptions import NotHeld
from resourcepool.locks.face import Face, H
from resourcepool.locks.hold import LockLease
from resourcepool.locks.owners import Key, current, held_by, is_task
from resourcepool.locks.rows import Named
from resourcepool.waiting.acquire import aacquire, acquire
from resourcepool.waiting.lease import delivered


class Owned(Face[H]):
    """Held by its owner, which releases it as often as it took it."""

    def owned(self) -> bool:
        """Whether this thread (or task) holds it, and may rely on that. No I/O."""
        hold = held_by(current()).get(self._named.key)
        return hold is not None and hold.is_held

    def held_to(self, do: str) -> H:
        """Return the caller's hold; raises LeaseLost, and NotHeld, which says that it is needed to ``do`` something."""
        hold: H | None = held_by(current()).get(self._named.key)
        if hold is None:
            raise self._not_held(do)
        hold.ensure_held()
        return hold

    @property
    def _named(self) -> Named:
        """What has the rows."""
        raise NotImplementedError

    def _obtain(self, wait: float) -> H:
        mine, key = held_by(current()), self._named.key
        if (hold := self._again(mine, key)) is None:
            hold = self._new_hold()
            self._take(mine, key, hold, self._leases(hold, wait))
        return hold

    async def _aobtain(self, wait: float) -> H:
        mine, key = held_by(current()), self._named.key
        if (hold := self._again(mine, key)) is None:
            hold = self._new_hold()
            self._take(mine, key, hold, await self._aleases(hold, wait))
        return hold

    def _new_hold(self) -> H:
        raise NotImplementedError

    def _leases(self, hold: H, wait: float) -> list[Any]:
        """Acquire what ``hold`` is to have."""
        return acquire(self._named, self._named._request(wait, hold))

    async def _aleases(self, hold: H, wait: float) -> list[Any]:
        return await aacquire(self._named, self._named._request(wait, hold))

    def _again(self, mine: dict[Key, H], key: Key) -> H | None:
        """Return the hold that the caller has already, taken once more."""
        hold = mine.get(key)
        if hold is not None:
            hold.ensure_held()
            hold.count += 1
        return hold

    def _take(self, mine: dict[Key, H], key: Key, hold: H, leases: list[LockLease]) -> None:
        try:
            hold.leases = leases
            mine[key] = hold
            delivered(leases)  # last: until then the keeper lets go of what an interrupted caller has not got
        except BaseException:
            mine.pop(key, None)
            raise

    def _not_held(self, wish: str) -> NotHeld:
        who = "task" if is_task() else "thread"
        return NotHeld(f"{self!r} is not held by this {who}, so it cannot {wish}")

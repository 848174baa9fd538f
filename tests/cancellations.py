"""Cancels asyncio work at each await, one after the other."""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any


async def cancelled_at(number: int, work: Coroutine[Any, Any, object]) -> str | None:
    """Run ``work``, cancelled when what it has waited for the so-manieth time is there; return the place, or None.

    That is the latest moment: what it waited for has been done, and it does not learn of it.
    """
    steps = _Steps(number, work)

    async def run() -> None:
        await steps

    try:
        await asyncio.create_task(run())
    except asyncio.CancelledError:
        assert steps.place, "cancelled by somebody else"
    else:
        assert not steps.place, f"it did not end: {steps.place}"
    return steps.place or None


class _Steps:
    """Goes step by step through what a coroutine waits for."""

    def __init__(self, number: int, work: Coroutine[Any, Any, object]) -> None:
        self._left, self._work, self.place = number, work, ""

    def __await__(self) -> Generator[Any, Any, None]:
        error: BaseException | None = None
        while True:
            try:
                awaited = self._work.send(None) if error is None else self._work.throw(error)
            except StopIteration:
                return
            error = None
            place = "" if self._left else _place(self._work)
            self._left -= 1
            try:
                yield awaited
            except BaseException as raised:  # noqa: BLE001 (the coroutine is to have it)
                error = raised
            if place:
                self.place, error = place, asyncio.CancelledError()


def _place(work: Any) -> str:
    """Return the innermost place of our code in which it waits."""
    places = []
    while (frame := getattr(work, "cr_frame", None)) is not None:
        places.append(f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}")
        work = work.cr_await
    return [place for place in places if "/asyncio/" not in place][-1]

"""Waits for a condition with a deadline, instead of sleeping for a fixed time."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.db import connections

Result = TypeVar("Result")

# Seconds between two looks: short at first, for most is soon a fact; later the processor is left to what is waited for.
FIRST_PAUSE, LONGEST_PAUSE, GROWTH = 0.002, 0.05, 1.3


def eventually(
    predicate: Callable[[], Result], within: float = 60, because: Callable[[], object] = str
) -> Result:
    """Return what ``predicate`` returns as soon as it is true; fail when it is not ``within`` seconds, for it hangs."""
    deadline, pause = time.monotonic() + within, FIRST_PAUSE
    while True:
        result = predicate()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within} s; {because()}")
        time.sleep(pause)
        pause = min(GROWTH * pause, LONGEST_PAUSE)


def at_once(count: int, work: Callable[[int], Result], timeout: float = 60) -> list[Result]:
    """Call ``work(0)`` to ``work(count - 1)`` in as many threads, all let go at the same moment."""
    barrier = threading.Barrier(count)

    def run(number: int) -> Result:
        barrier.wait(timeout)
        return work(number)

    return in_threads([lambda number=number: run(number) for number in range(count)], timeout)


def in_threads(works: Sequence[Callable[[], Result]], timeout: float = 60) -> list[Result]:
    """Call each in a thread of its own, with a database connection of its own; return what they returned."""
    threads = [InBackground(work) for work in works]
    deadline = time.monotonic() + timeout
    return [thread.result(deadline - time.monotonic()) for thread in threads]


def closing(work: Callable[..., Result], *args: Any) -> Result:
    """Call ``work`` and close the connections of this thread."""
    try:
        return work(*args)
    finally:
        connections.close_all()


def elsewhere(work: Callable[..., Any], *args: Any) -> Any:
    """Return what ``work`` returns in another thread; raise what it raises."""
    return InBackground(work, *args).result()


class InBackground(threading.Thread):
    """``work`` in a thread; ``result()`` waits for what it returns, and raises what it raises.

    A daemon, so that one that hangs fails its test and not the whole run.
    """

    def __init__(self, work: Callable[..., Any], *args: Any) -> None:
        super().__init__(daemon=True)
        self._work, self._args = work, args
        self._result: Any = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._result = closing(self._work, *self._args)
        except BaseException as error:  # noqa: BLE001 (raised where it is asked for)
            self._error = error

    def result(self, timeout: float = 60) -> Any:
        self.join(max(0.0, timeout))
        assert not self.is_alive(), f"still running after {timeout} s"
        if self._error is not None:
            raise self._error
        return self._result

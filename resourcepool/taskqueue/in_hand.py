"""The attempts that a process has in hand: running ones, and ended ones whose ends are not stored yet."""

import contextlib
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from resourcepool.db.threads.wakeup import Wakeup
from resourcepool.taskqueue.handler_threads import AttemptT, HandlerThreads
from resourcepool.taskqueue.running_task import GIVEN_BACK, Result

EndT = TypeVar("EndT")


class InHand(Generic[AttemptT, EndT]):
    """The attempts of one process. Only the thread of its loop calls this.

    Attributes:
        threads: they run the handlers.
        attempts: all of them, by primary key.
        ends: how attempts ended that are not stored yet.
    """

    def __init__(self, wakeup: Wakeup, end_of: Callable[[AttemptT, Result, bool], EndT]) -> None:
        """Start no thread yet.

        Args:
            wakeup: wakes the loop when a handler has ended.
            end_of: returns how an attempt with this result ended; True: the process exits without waiting for it.
        """
        self._wakeup, self._end_of = wakeup, end_of
        self._ended: SimpleQueue[tuple[AttemptT, Result]] = SimpleQueue()
        self.threads: HandlerThreads[AttemptT] = HandlerThreads(self._note_end)
        self.attempts: dict[int, AttemptT] = {}
        self.ends: dict[AttemptT, EndT] = {}

    @property
    def running(self) -> list[AttemptT]:
        return [attempt for attempt in self.attempts.values() if attempt not in self.ends]

    def run(self, attempts: list[AttemptT], threads: int) -> None:
        """Run these, in ``threads`` threads at most."""
        self.attempts.update({attempt.pk: attempt for attempt in attempts})
        self.threads.run(attempts, threads)

    def collect(self) -> None:
        """Note how attempts ended whose handlers have returned."""
        with contextlib.suppress(Empty):
            while True:
                attempt, result = self._ended.get_nowait()
                if attempt not in self.ends:
                    self.end(attempt, result)

    def end(self, attempt: AttemptT, result: Result, *, is_cut_off: bool = False) -> None:
        """Note how an attempt ended."""
        self.ends[attempt] = self._end_of(attempt, result, is_cut_off)

    def forget(self, attempts: Iterable[AttemptT]) -> None:
        """Drop attempts whose ends are stored."""
        for attempt in list(attempts):
            del self.ends[attempt]
            if self.attempts.get(attempt.pk) is attempt:
                del self.attempts[attempt.pk]

    def stop(self) -> None:
        """Tell the handlers that the process is stopping."""
        for attempt in self.attempts.values():
            attempt.stop()

    def _note_end(self, attempt: AttemptT, result: Result) -> None:
        if result is not GIVEN_BACK:  # by the loop, which has noted that itself
            self._ended.put((attempt, result))
            self._wakeup.wake()
